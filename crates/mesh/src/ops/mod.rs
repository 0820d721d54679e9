//! What an outsider can see of a running service without looking into its database: a heartbeat each second and
//! operational events, over plain NATS.
//!
//! It is off the critical path. Nothing here waits for a broker or a database: parts of the process leave what they know on
//! the [`Ops`] board, a task of its own tells it. What cannot be told is dropped and counted.

mod beat;
mod event;
mod heartbeat;
mod kept;
mod position;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use envelope::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

pub(crate) use beat::{Beat, run};
pub use event::OpsEvent;
pub(crate) use kept::Kept;

use crate::outbox::status::Gauges;
use crate::telemetry::metrics;

/// Events that wait to be told. One more is dropped: by then the broker has been away for long, or there are so many that
/// none is news.
const EVENTS_MAX: usize = 256;

/// The board of one process: what its parts know that others want to see.
///
/// Every method returns at once; a lock is held for a few instructions and never across an await.
#[derive(Debug, Default)]
pub struct Ops {
    board: Mutex<Board>,
    dropped: AtomicU64,
    in_flight: AtomicU64,
    /// Raised when there is an event to tell.
    news: Notify,
}

#[derive(Debug, Default)]
struct Board {
    events: VecDeque<(Timestamp, OpsEvent)>,
    /// Deliveries that wait for another try, by fact and subscriber.
    retrying: BTreeMap<(Uuid, &'static str), Retrying>,
    /// Duplicates since the last heartbeat, by subscriber.
    duplicates: BTreeMap<&'static str, u64>,
    /// Deliveries without effect since the last heartbeat, by subscriber and reason.
    skipped: BTreeMap<(&'static str, &'static str), u64>,
    outbox: Option<(Instant, Gauges)>,
    kept: Vec<Kept>,
    relay_trouble: Option<(Timestamp, String)>,
}

/// A delivery that waits for another try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retrying {
    pub(crate) sequence: u64,
    /// How many executions failed; 0 when none was made.
    pub(crate) attempt: u32,
    pub(crate) attempts_max: u32,
    pub(crate) next_at: Timestamp,
    pub(crate) error: String,
}

impl Ops {
    /// Tells an event. Never waits: when too many are waiting to be told, this one is dropped and counted.
    pub fn emit(&self, at: Timestamp, event: OpsEvent) {
        let mut board = self.lock();
        if board.events.len() >= EVENTS_MAX {
            drop(board);
            self.dropped(1);
            return;
        }
        board.events.push_back((at, event));
        drop(board);
        self.news.notify_one();
    }

    /// Events that were not told since the process began.
    pub fn events_dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn dropped(&self, events: u64) {
        self.dropped.fetch_add(events, Ordering::Relaxed);
        metrics::ops_events_dropped(events);
    }

    /// A delivery waits for another try.
    pub(crate) fn retrying(&self, event_id: Uuid, subscriber: &'static str, retrying: Retrying) {
        self.lock().retrying.insert((event_id, subscriber), retrying);
    }

    /// A delivery needs no further try.
    pub(crate) fn settled(&self, event_id: Uuid, subscriber: &'static str) {
        self.lock().retrying.remove(&(event_id, subscriber));
    }

    /// A fact came again to a subscriber that had settled it.
    pub(crate) fn duplicate(&self, subscriber: &'static str) {
        *self.lock().duplicates.entry(subscriber).or_default() += 1;
    }

    /// A handler decided to change nothing.
    pub(crate) fn skipped(&self, subscriber: &'static str, reason: &'static str) {
        *self.lock().skipped.entry((subscriber, reason)).or_default() += 1;
    }

    /// Keys that are being handled.
    pub(crate) fn in_flight(&self, deliveries: u64) {
        self.in_flight.store(deliveries, Ordering::Relaxed);
    }

    /// The numbers of the outbox as of now.
    pub(crate) fn outbox(&self, gauges: Gauges) {
        self.lock().outbox = Some((Instant::now(), gauges));
    }

    /// How many deliveries are kept as dead letters, by subscriber.
    pub(crate) fn kept(&self, kept: Vec<Kept>) {
        self.lock().kept = kept;
    }

    /// A publish failed.
    pub(crate) fn relay_trouble(&self, at: Timestamp, why: &str) {
        self.lock().relay_trouble = Some((at, why.to_owned()));
    }

    /// Waits until there is an event to tell.
    async fn news(&self) {
        self.news.notified().await;
    }

    fn take_events(&self) -> VecDeque<(Timestamp, OpsEvent)> {
        std::mem::take(&mut self.lock().events)
    }

    /// What was counted since it was last taken, as events.
    fn take_counted(&self) -> Vec<OpsEvent> {
        let mut board = self.lock();
        let duplicates = std::mem::take(&mut board.duplicates);
        let skipped = std::mem::take(&mut board.skipped);
        drop(board);
        let duplicate = |(subscriber, count): (&'static str, u64)| OpsEvent::DuplicateIgnored {
            subscriber: subscriber.to_owned(),
            count,
        };
        let skip = |((subscriber, reason), count): ((&'static str, &'static str), u64)| OpsEvent::SkippedByRule {
            subscriber: subscriber.to_owned(),
            reason: reason.to_owned(),
            count,
        };
        duplicates.into_iter().map(duplicate).chain(skipped.into_iter().map(skip)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        // The board is whole between any two statements, so a panic elsewhere does not spoil it.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
