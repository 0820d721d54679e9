//! What the inbox bucket says about one delivery, and what follows from it. Pure.

use envelope::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::delivery::Next;

/// The newest failures that are kept. The others were logged.
const HISTORY_MAX: usize = 32;

/// An error is kept up to here, so that an entry stays far below what the server takes.
const ERROR_CHARS_MAX: usize = 2_000;

/// One delivery: a fact and a subscriber.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) state: State,
    /// The number of the execution that the state is about.
    pub(super) attempt: u32,
    /// The process that wrote it.
    pub(super) instance: Uuid,
    /// Failed executions, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) history: Vec<FailedAttempt>,
    /// Why a settled delivery changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) no_effect: Option<String>,
}

/// How far a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// An execution has begun.
    Claimed,
    /// It ended without settling the delivery.
    Failed,
    /// Done.
    Settled,
    /// There is a dead letter of it.
    Kept,
}

/// One line of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FailedAttempt {
    pub(super) attempt: u32,
    pub(super) at: Timestamp,
    pub(super) error: String,
}

/// What precedes an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Begin {
    /// It is this one; nothing is to be written.
    Go(u32),
    /// It is the one of this entry, once that is written.
    Write(Entry),
    /// Another process may be executing the handler.
    Elsewhere,
}

/// What a claim meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Claim {
    /// Nothing: this is to be written.
    Write(Entry),
    /// The claim of this very execution.
    Ours,
    /// The delivery was settled or kept.
    Duplicate,
    /// Something that has to be counted first.
    Recount,
}

impl Entry {
    fn claimed(attempt: u32, instance: Uuid, history: Vec<FailedAttempt>) -> Self {
        Self { state: State::Claimed, attempt, instance, history, no_effect: None }
    }

    /// Whether the delivery needs nothing any more.
    pub(super) fn is_concluded(&self) -> bool {
        matches!(self.state, State::Settled | State::Kept)
    }

    /// The entry once the delivery is settled.
    pub(super) fn settled(attempt: u32, instance: Uuid, no_effect: Option<&str>) -> Self {
        let no_effect = no_effect.map(ToOwned::to_owned);
        Self { state: State::Settled, attempt, instance, history: Vec::new(), no_effect }
    }

    /// The entry once there is a dead letter; that has the history.
    pub(super) fn kept(attempt: u32, instance: Uuid) -> Self {
        Self { state: State::Kept, attempt, instance, history: Vec::new(), no_effect: None }
    }
}

/// Which execution begins. `lapsed` says that a claim of another process has stood longer than an execution takes.
///
/// When nothing was written down about a redelivery, one earlier execution is assumed: it may have been cut off. A claim
/// that another process left counts as an execution. One of this process is what an unknown answer left: the process
/// knows that it is executing nothing.
pub(super) fn begin(found: Option<&Entry>, next: Next, instance: Uuid, lapsed: bool) -> Begin {
    match (next, found) {
        (Next::First, _) => Begin::Go(1),
        (_, Some(entry)) if entry.is_concluded() => Begin::Go(entry.attempt),
        (Next::Counted(attempt), None) => Begin::Go(attempt),
        (Next::Counted(attempt), Some(entry)) if entry.instance == instance => Begin::Go(attempt),
        (Next::Count, None) => Begin::Write(Entry::claimed(2, instance, Vec::new())),
        (_, Some(entry)) if entry.state == State::Claimed && entry.instance == instance => Begin::Go(entry.attempt),
        (_, Some(entry)) if entry.state == State::Claimed && !lapsed => Begin::Elsewhere,
        (_, Some(entry)) => Begin::Write(Entry::claimed(entry.attempt + 1, instance, entry.history.clone())),
    }
}

/// Whether execution number `attempt` may enter the handler.
pub(super) fn claim(found: Option<&Entry>, attempt: u32, instance: Uuid) -> Claim {
    match found {
        None => Claim::Write(Entry::claimed(attempt, instance, Vec::new())),
        Some(entry) if entry.is_concluded() => Claim::Duplicate,
        Some(entry) if entry.state == State::Claimed && entry.instance == instance && entry.attempt == attempt => {
            Claim::Ours
        }
        Some(_) => Claim::Recount,
    }
}

/// The entry after a failure; none when the delivery is concluded, as by an execution that took too long and ended well.
pub(super) fn failed(found: Option<&Entry>, failure: &FailedAttempt, instance: Uuid) -> Option<Entry> {
    if found.is_some_and(Entry::is_concluded) {
        return None;
    }
    let attempt = found.map_or(0, |entry| entry.attempt).max(failure.attempt);
    let mut history = found.map(|entry| entry.history.clone()).unwrap_or_default();
    let error = failure.error.chars().take(ERROR_CHARS_MAX).collect();
    history.push(FailedAttempt { error, ..failure.clone() });
    let surplus = history.len().saturating_sub(HISTORY_MAX);
    history.drain(..surplus);
    Some(Entry { state: State::Failed, attempt, instance, history, no_effect: None })
}

#[cfg(test)]
mod tests;
