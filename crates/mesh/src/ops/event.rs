//! What is worth telling when it happens.

use serde::Serialize;
use uuid::Uuid;

/// An operational event, as it stands in `docs/operations-events.md`.
///
/// It is news for people and tools, not a fact: it may be lost, and nothing may be built on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event")]
pub enum OpsEvent {
    /// A delivery was given up, or cannot be read, and is kept with its bytes.
    DeadLettered {
        /// Who should have handled it.
        subscriber: String,
        /// The fact; derived from the bytes when it has no readable id.
        event_id: Uuid,
        /// `<domain>.<fact>.v<major>`, or the subject when it says nothing else.
        event_type: String,
        /// Later facts of this key wait for the subscriber.
        key: String,
        /// The flow, when it can be read.
        flow_id: Option<Uuid>,
        /// Place in the stream.
        sequence: u64,
        /// `parked` or `dead`.
        state: &'static str,
        /// Why, as a code.
        reason: String,
        /// Why, in words.
        detail: String,
        /// Executions that were made.
        attempts: u32,
    },
    /// A delivery queues up behind an earlier one of its key that is kept.
    ParkedOutOfOrder {
        /// Who should have handled it.
        subscriber: String,
        /// The fact.
        event_id: Uuid,
        /// `<domain>.<fact>.v<major>`.
        event_type: String,
        /// The key of both.
        key: String,
        /// The flow, when it can be read.
        flow_id: Option<Uuid>,
        /// Place in the stream.
        sequence: u64,
        /// The earlier fact.
        behind: Option<Uuid>,
    },
    /// A kept delivery was run again, and settled.
    Redriven {
        /// Who handled it.
        subscriber: String,
        /// The fact.
        event_id: Uuid,
        /// The operation that it was part of; nothing when it followed an earlier one of its key by itself.
        operation: Option<Uuid>,
    },
    /// A kept delivery was run again, and is kept on.
    RedriveFailed {
        /// Who should have handled it.
        subscriber: String,
        /// The fact.
        event_id: Uuid,
        /// The operation that it was part of; nothing when it followed an earlier one of its key by itself.
        operation: Option<Uuid>,
        /// What went wrong.
        error: String,
    },
    /// Facts came again to a subscriber that had settled them: how many since the last heartbeat.
    DuplicateIgnored {
        /// To whom.
        subscriber: String,
        /// How many.
        count: u64,
    },
    /// A handler decided to change nothing: how often since the last heartbeat.
    SkippedByRule {
        /// Whose rule.
        subscriber: String,
        /// Its reason.
        reason: String,
        /// How often.
        count: u64,
    },
    /// The stream had lost a fact that it had acknowledged; it was published again under its own id.
    Republished {
        /// The fact.
        event_id: Uuid,
        /// `<domain>.<fact>.v<major>`.
        event_type: String,
        /// Its key.
        key: String,
        /// Where it had been stored.
        lost_sequence: u64,
    },
    /// Facts wait in the outbox for longer than they should. Told once for each time that it begins.
    RelayStalled {
        /// Age of the oldest, in seconds.
        oldest_seconds: f64,
        /// How many.
        unsent: u64,
        /// The last failure of a publish, if there was one.
        last_error: Option<String>,
    },
    /// The stream is another one, or ends earlier than it did.
    StreamRollbackSeen {
        /// Its last sequence when it was looked at before.
        last_sequence_before: u64,
        /// Its last sequence now.
        last_sequence: u64,
        /// Whether it was created anew.
        created_anew: bool,
    },
}

impl OpsEvent {
    /// [`OpsEvent::Redriven`]
    pub(crate) fn redriven(subscriber: &str, event_id: Uuid, operation: Option<Uuid>) -> Self {
        Self::Redriven { subscriber: subscriber.to_owned(), event_id, operation }
    }

    /// [`OpsEvent::RedriveFailed`]
    pub(crate) fn redrive_failed(subscriber: &str, event_id: Uuid, operation: Option<Uuid>, error: &str) -> Self {
        Self::RedriveFailed { subscriber: subscriber.to_owned(), event_id, operation, error: error.to_owned() }
    }

    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::DeadLettered { .. } => "DeadLettered",
            Self::ParkedOutOfOrder { .. } => "ParkedOutOfOrder",
            Self::Redriven { .. } => "Redriven",
            Self::RedriveFailed { .. } => "RedriveFailed",
            Self::DuplicateIgnored { .. } => "DuplicateIgnored",
            Self::SkippedByRule { .. } => "SkippedByRule",
            Self::Republished { .. } => "Republished",
            Self::RelayStalled { .. } => "RelayStalled",
            Self::StreamRollbackSeen { .. } => "StreamRollbackSeen",
        }
    }
}
