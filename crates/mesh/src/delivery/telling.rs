//! What outsiders are told about deliveries that do not simply settle.

use std::time::Duration;

use envelope::Timestamp;

use super::{ErasedSubscriber, Incoming};
use crate::context::ServiceContext;
use crate::dead_letter::{DeadLetter, State};
use crate::ops::{OpsEvent, Retrying};

/// A delivery waits for its next try, `after` from now; it was tried `attempt` of `attempts_max` times.
pub(super) fn retrying(
    context: &ServiceContext,
    subscriber: &'static str,
    incoming: &Incoming,
    (attempt, attempts_max): (u32, u32),
    after: Duration,
    error: &str,
) {
    let next_at = Timestamp::from_offset(context.clock.now().as_offset() + after);
    let sequence = incoming.stream_sequence();
    let retrying = Retrying { sequence, attempt, attempts_max, next_at, error: error.to_owned() };
    context.ops.retrying(incoming.id(), subscriber, retrying);
}

/// A delivery waits for a build that knows its version; no attempt is made.
pub(super) fn newer_version<C>(
    context: &ServiceContext,
    subscriber: &dyn ErasedSubscriber<C>,
    incoming: &Incoming,
    after: Duration,
) {
    let attempts = (0, subscriber.policy().attempts_max);
    retrying(context, subscriber.name(), incoming, attempts, after, "a version that this build does not know");
}

/// A delivery is kept as a dead letter.
pub(super) fn kept(context: &ServiceContext, letter: &DeadLetter<'_>, incoming: &Incoming) {
    let DeadLetter { subscriber, reason, detail, .. } = *letter;
    tracing::error!(subscriber, event = %incoming.id(), reason, detail, "the delivery is kept as a dead letter");
    let (subscriber, event_id) = (letter.subscriber.to_owned(), letter.event_id);
    let (event_type, key) = (letter.event_type.to_owned(), letter.key.to_owned());
    let (flow_id, sequence) = (letter.correlation_id, incoming.stream_sequence());
    let event = if letter.behind.is_some() {
        OpsEvent::ParkedOutOfOrder { subscriber, event_id, event_type, key, flow_id, sequence, behind: letter.behind }
    } else {
        OpsEvent::DeadLettered {
            subscriber,
            event_id,
            event_type,
            key,
            flow_id,
            sequence,
            state: if letter.state == State::Dead { "dead" } else { "parked" },
            reason: letter.reason.to_owned(),
            detail: letter.detail.to_owned(),
            attempts: letter.attempts,
        }
    };
    context.ops.emit(context.clock.now(), event);
}
