//! Which handlers are executing right now in this process.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

/// A delivery by its fact and its subscriber.
type Key = (Uuid, &'static str);

/// The executions of this process. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Executions(Arc<Mutex<HashSet<Key>>>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Running {
    executions: Executions,
    key: Key,
}

impl Executions {
    /// Whether an execution of the delivery has begun here and not ended.
    pub(super) fn contains(&self, event_id: Uuid, subscriber: &'static str) -> bool {
        self.lock().contains(&(event_id, subscriber))
    }

    /// Begins the execution of a delivery.
    pub(super) fn enter(&self, event_id: Uuid, subscriber: &'static str) -> Running {
        let key = (event_id, subscriber);
        self.lock().insert(key);
        Running { executions: self.clone(), key }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Key>> {
        // The set is whole between any two statements, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.executions.lock().remove(&self.key);
    }
}
