//! Keys that may not be published right now, because a row of theirs failed. Pure.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::failure::Backoff;

/// Delays before a key is tried again.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(30) };

/// Refused publishes after which a row is put aside.
pub(super) const ATTEMPTS_MAX: i32 = 10;

/// The keys that are held back, by why.
#[derive(Debug, Default)]
pub(super) struct BlockedKeys {
    backing_off: HashMap<String, Entry>,
    /// Keys with a row in `outbox_dead`: they wait until that row is redriven.
    dead: HashSet<String>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    failures: u32,
    until: Instant,
}

impl BlockedKeys {
    /// Holds a key back after a failure; `scale` (0.5 to 1.0) is the jitter.
    pub(super) fn failed(&mut self, key: &str, now: Instant, scale: f64) {
        let failures = self.backing_off.get(key).map_or(1, |entry| entry.failures.saturating_add(1));
        let until = now + BACKOFF.delay(failures).mul_f64(scale);
        self.backing_off.insert(key.to_owned(), Entry { failures, until });
    }

    /// A row of the key was stored: its next failure starts the back-off anew.
    pub(super) fn stored(&mut self, key: &str) {
        if !self.backing_off.is_empty() {
            self.backing_off.remove(key);
        }
    }

    /// Takes over what the database says about dead rows. Returns whether a key is free again.
    pub(super) fn set_dead(&mut self, keys: impl IntoIterator<Item = String>) -> bool {
        let before = std::mem::replace(&mut self.dead, keys.into_iter().collect());
        !before.is_subset(&self.dead)
    }

    /// A row of the key has just been put aside.
    pub(super) fn died(&mut self, key: &str) {
        self.dead.insert(key.to_owned());
        self.backing_off.remove(key);
    }

    /// Keys that a claim must leave out at `now`.
    pub(super) fn held(&self, now: Instant) -> Vec<String> {
        let waiting = self.backing_off.iter().filter(|(_, entry)| entry.until > now).map(|(key, _)| key);
        waiting.chain(&self.dead).cloned().collect()
    }

    /// Whether rows of the key may be published at `now`.
    pub(super) fn is_held(&self, key: &str, now: Instant) -> bool {
        self.dead.contains(key) || self.backing_off.get(key).is_some_and(|entry| entry.until > now)
    }

    /// When the first key that waits at `now` may be tried again. A key that is due already does not count: its rows may
    /// have left this relay with a lease, and waiting for them would be no wait at all.
    pub(super) fn next_due(&self, now: Instant) -> Option<Instant> {
        self.backing_off.values().map(|entry| entry.until).filter(|until| *until > now).min()
    }

    /// Forgets the failures of keys that have been due for so long that their rows must have left this relay.
    pub(super) fn prune(&mut self, now: Instant) {
        self.backing_off.retain(|_, entry| entry.until + BACKOFF.longest > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_key_waits_longer_each_time_and_alone() {
        let start = Instant::now();
        let mut keys = BlockedKeys::default();
        keys.failed("a", start, 1.0);
        assert!(keys.is_held("a", start) && !keys.is_held("b", start));
        assert_eq!(keys.next_due(start), Some(start + Duration::from_millis(200)));
        keys.failed("a", start, 1.0);
        assert_eq!(keys.next_due(start), Some(start + Duration::from_millis(400)));
        assert_eq!(keys.held(start + Duration::from_millis(400)), Vec::<String>::new(), "due, so it may be claimed");
        keys.stored("a");
        keys.failed("a", start, 1.0);
        assert_eq!(keys.next_due(start), Some(start + Duration::from_millis(200)), "success resets the back-off");
    }

    #[test]
    fn a_key_whose_rows_have_gone_elsewhere_neither_wakes_the_relay_nor_stays() {
        let start = Instant::now();
        let mut keys = BlockedKeys::default();
        keys.failed("a", start, 1.0);
        let due = start + Duration::from_millis(200);
        assert_eq!(keys.next_due(due), None, "a wait until then would return at once, again and again");
        keys.prune(due);
        assert_eq!(keys.backing_off.len(), 1, "its next failure is the second");
        keys.prune(due + Duration::from_secs(30));
        assert_eq!(keys.backing_off.len(), 0);
    }

    #[test]
    fn a_key_with_a_dead_row_waits_until_the_database_says_otherwise() {
        let now = Instant::now();
        let mut keys = BlockedKeys::default();
        keys.died("a");
        assert_eq!(keys.held(now + Duration::from_secs(86_400)), ["a"]);
        assert!(!keys.set_dead(["a".to_owned(), "b".to_owned()]), "none is free");
        assert!(keys.set_dead(["b".to_owned()]));
        assert!(!keys.is_held("a", now));
    }
}
