//! Keeps the leases alive beside the relay's work, so that a slow broker cannot let them run out.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::leases::{self, Lease};
use crate::clock::jittered;
use crate::context::ServiceContext;

/// How often leases are renewed and shared out anew.
const RENEWAL: Duration = Duration::from_secs(3);

/// The same while a group is being handed over: until its rows in flight have been moved.
const HAND_OVER: Duration = Duration::from_millis(250);

/// The leases that this relay holds, as last heard from the database.
#[derive(Debug, Clone, Default)]
pub(super) struct Held {
    pub(super) leases: Vec<Lease>,
    /// Publish nothing after it; `None` before the first renewal.
    pub(super) deadline: Option<Instant>,
    /// Grows with every renewal.
    pub(super) renewal: u64,
}

/// What the relay and its keeper share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) held: watch::Sender<Held>,
    work: Mutex<Work>,
    renew_now: Notify,
}

/// What the relay is doing.
#[derive(Debug, Clone, Default)]
struct Work {
    /// The renewal that it has taken over: it reads from no group that is not part of it.
    followed: u64,
    /// Groups with rows in flight.
    busy: HashSet<i16>,
}

impl Shared {
    /// Says which renewal the relay has taken over and which groups have rows in flight.
    pub(super) fn report(&self, followed: u64, busy: HashSet<i16>) {
        if let Ok(mut work) = self.work.lock() {
            *work = Work { followed, busy };
        }
    }

    /// Asks for a renewal before it is due: the relay doubts its leases.
    pub(super) fn doubt(&self) {
        self.renew_now.notify_one();
    }

    /// Whether the relay is done with a group that it was told to leave: it has heard of that, and nothing is in flight.
    fn has_left(&self, group: i16) -> bool {
        let held = self.held.borrow();
        let told = held.leases.iter().all(|lease| lease.bucket_group != group);
        told && self.work.lock().is_ok_and(|work| work.followed == held.renewal && !work.busy.contains(&group))
    }
}

/// Renews until `stop`, then gives everything up.
pub(super) async fn keep(pool: PgPool, context: Arc<ServiceContext>, shared: Arc<Shared>, stop: CancellationToken) {
    let owner = context.instance;
    let label = format!("{}@{} pid {}", context.name, context.build, std::process::id());
    let mut is_reachable = true;
    while !stop.is_cancelled() {
        let mut pause = RENEWAL;
        let renewal = leases::renew(&pool, owner, &label, |group| shared.has_left(group)).await;
        is_reachable = renewal.is_ok();
        match renewal {
            Ok(renewal) => {
                if renewal.is_leaving {
                    pause = HAND_OVER;
                }
                shared.held.send_modify(|held| {
                    held.leases = renewal.leases;
                    held.deadline = Some(renewal.deadline);
                    held.renewal += 1;
                });
            }
            Err(error) => tracing::warn!(%error, "the relay's leases could not be renewed"),
        }
        tokio::select! {
            () = tokio::time::sleep(jittered(pause, &*context.clock)) => {}
            () = shared.renew_now.notified() => {}
            () = stop.cancelled() => {}
        }
    }
    shared.held.send_modify(|held| held.leases.clear());
    // A database that did not answer a moment ago would only hold up the end.
    if is_reachable && let Err(error) = leases::resign(&pool, owner).await {
        tracing::warn!(%error, "the relay's leases could not be given up; they run out by themselves");
    }
}
