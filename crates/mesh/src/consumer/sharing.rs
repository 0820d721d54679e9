//! How many messages share one transaction. Pure.
//!
//! Sharing saves a commit and round trips, which is nearly everything when handlers are quick; it makes messages run one
//! after the other, which is the wrong thing when handlers are slow. So it is used when more waits than can run at once,
//! and as far as the handlers are quick.

use std::time::Duration;

use crate::delivery::PARTS_MAX;

/// Shared transactions at the same time. A few keep the database busy; more only wait for each other.
const GROUPS_MAX: usize = 4;

/// What one shared transaction may take: its locks are held so long, and its first message waits so long for the last.
const BUDGET: Duration = Duration::from_millis(50);

/// Sharing among fewer is not worth the loss of concurrency.
const SHARED_MIN: usize = 4;

/// Most messages of a transaction in which every handler takes many facts by one call.
const BATCH_MAX: usize = 256;

/// Decides by what it measures.
#[derive(Debug)]
pub(super) struct Sharing {
    /// Handlers of one message by one call each, or of many by one.
    most: usize,
    /// Time per message, smoothed.
    each: Duration,
}

/// What to start next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// One message with a transaction of its own.
    Single,
    /// So many messages with one transaction.
    Shared(usize),
    /// Nothing until a worker is done.
    Wait,
}

impl Sharing {
    /// `batches` is true when every subscriber takes many facts by one call.
    pub(super) fn new(batches: bool) -> Self {
        let most = if batches { BATCH_MAX } else { PARTS_MAX };
        // As if every message filled its share of the budget: the first group is a small one.
        Self { most, each: BUDGET / 8 }
    }

    /// For deliveries that cannot share: each has a transaction of its own.
    pub(super) fn none() -> Self {
        Self { most: 1, each: BUDGET }
    }

    /// What to start while `ready` messages of different keys wait, `singles` and `groups` run, and `workers` may.
    pub(super) fn next(&self, ready: usize, singles: usize, groups: usize, workers: usize) -> Start {
        if ready == 0 || singles + groups >= workers {
            return Start::Wait;
        }
        let share = self.share();
        if share < SHARED_MIN || ready + singles <= workers {
            // With groups at work, the next one takes what waits: it is quicker than many small transactions.
            return if groups > 0 && share >= SHARED_MIN { Start::Wait } else { Start::Single };
        }
        if groups >= GROUPS_MAX.min(workers) { Start::Wait } else { Start::Shared(share.min(ready)) }
    }

    /// Messages that fit the budget.
    fn share(&self) -> usize {
        let fit = BUDGET.as_nanos() / self.each.as_nanos().max(1);
        usize::try_from(fit).unwrap_or(usize::MAX).min(self.most)
    }

    /// Takes in how long `messages` messages of one transaction took together.
    pub(super) fn measured(&mut self, messages: usize, took: Duration) {
        let each = took / u32::try_from(messages.max(1)).unwrap_or(u32::MAX);
        self.each = (self.each * 3 + each) / 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quick() -> Sharing {
        let mut sharing = Sharing::new(false);
        (0..20).for_each(|_| sharing.measured(50, Duration::from_millis(10)));
        sharing
    }

    #[test]
    fn a_few_messages_run_at_once_and_a_backlog_shares() {
        let sharing = quick();
        assert_eq!(sharing.next(5, 0, 0, 14), Start::Single);
        assert_eq!(sharing.next(9, 5, 0, 14), Start::Single);
        assert_eq!(sharing.next(10, 5, 0, 14), Start::Shared(10));
        assert_eq!(sharing.next(500, 0, 0, 14), Start::Shared(PARTS_MAX));
        assert_eq!(sharing.next(0, 0, 0, 14), Start::Wait);
    }

    #[test]
    fn a_few_groups_run_and_the_rest_waits_for_the_next() {
        let sharing = quick();
        assert_eq!(sharing.next(500, 0, 3, 14), Start::Shared(PARTS_MAX));
        assert_eq!(sharing.next(500, 0, 4, 14), Start::Wait);
        assert_eq!(sharing.next(3, 0, 1, 14), Start::Wait, "the next group is quicker than three commits");
        assert_eq!(sharing.next(500, 0, 1, 1), Start::Wait, "no more than the workers that there are");
        assert_eq!(sharing.next(500, 0, 0, 1), Start::Shared(PARTS_MAX));
    }

    #[test]
    fn slow_handlers_keep_their_concurrency() {
        let mut sharing = quick();
        (0..20).for_each(|_| sharing.measured(1, Duration::from_millis(30)));
        assert_eq!(sharing.next(500, 0, 0, 14), Start::Single);
        assert_eq!(sharing.next(500, 13, 1, 14), Start::Wait);
        (0..20).for_each(|_| sharing.measured(1, Duration::from_millis(2)));
        assert!(matches!(sharing.next(500, 0, 0, 14), Start::Shared(8..=25)), "a guess from single ones is careful");
    }

    #[test]
    fn what_cannot_share_never_does() {
        let mut sharing = Sharing::none();
        (0..20).for_each(|_| sharing.measured(1, Duration::from_micros(100)));
        assert_eq!(sharing.next(500, 0, 0, 14), Start::Single);
    }

    #[test]
    fn sets_are_larger_than_sequences() {
        let mut sharing = Sharing::new(true);
        (0..20).for_each(|_| sharing.measured(256, Duration::from_millis(12)));
        assert_eq!(sharing.next(1_000, 0, 0, 14), Start::Shared(256));
    }
}
