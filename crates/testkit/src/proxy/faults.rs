//! What is wrong with a link at the moment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// One of the two ways through a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

impl Direction {
    /// Both of them.
    pub const BOTH: [Direction; 2] = [Direction::ToServer, Direction::ToClient];
}

/// The faults of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    pub(super) delay: Duration,
    pub(super) silent: bool,
    pub(super) bytes_per_second: Option<u64>,
}

/// One direction of all connections of a proxy.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) faults: watch::Sender<Faults>,
    /// How many bytes may still pass before a connection is cut; `None` when none is to be.
    budget: Mutex<Option<u64>>,
    passed_bytes: AtomicU64,
}

/// How much of some bytes may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grant {
    All,
    /// This many, and then the connection is cut.
    ThenCut(usize),
}

impl Lane {
    pub(super) fn new() -> Lane {
        Lane { faults: watch::Sender::default(), budget: Mutex::new(None), passed_bytes: AtomicU64::new(0) }
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Faults)) {
        self.faults.send_modify(change);
    }

    pub(super) fn set_budget(&self, bytes: Option<u64>) {
        *self.budget.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
    }

    /// Takes `wanted` bytes out of the budget. The connection that uses it up is the only one to be cut.
    pub(super) fn take(&self, wanted: usize) -> Grant {
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        match *budget {
            None => Grant::All,
            Some(left) if left > wanted as u64 => {
                *budget = Some(left - wanted as u64);
                Grant::All
            }
            Some(left) => {
                *budget = None;
                // No more than `wanted`, which is a usize.
                Grant::ThenCut(usize::try_from(left).unwrap_or(wanted))
            }
        }
    }

    pub(super) fn count(&self, bytes: usize) {
        self.passed_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn passed_bytes(&self) -> u64 {
        self.passed_bytes.load(Ordering::Relaxed)
    }
}
