//! When a comparison is due, and why. Pure.

use std::time::Duration;

use super::state::State;
use super::stored::Look;

/// Why the outbox is compared with the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// Somebody asked for it.
    Request,
    /// The replica has just taken this work over, at its start as a rule.
    Start,
    /// The stream is another one than before.
    StreamReplaced,
    /// The stream's last sequence is lower than before.
    SequenceFell,
    /// The connection was lost and made again: it may lead to a server with an older copy of the stream.
    Reconnect,
    /// The comparison before could not be finished, or put facts back that are to be looked at again.
    Again,
    /// It is time.
    Schedule,
}

impl Cause {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Start => "start",
            Self::StreamReplaced => "stream_replaced",
            Self::SequenceFell => "sequence_fell",
            Self::Reconnect => "reconnect",
            Self::Again => "again",
            Self::Schedule => "schedule",
        }
    }

    /// Whether something suggests a loss: then every fact is looked at, else a sample of many.
    pub(super) const fn is_suspicious(self) -> bool {
        !matches!(self, Self::Schedule)
    }
}

/// What this replica knows besides the remembered state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// It has compared since it took this work over.
    pub(super) has_compared: bool,
    /// The connection was lost since it last compared.
    pub(super) has_reconnected: bool,
    /// The last comparison failed: how long to wait after its end before there is another one, whatever its cause.
    pub(super) pause: Option<Duration>,
    /// The last comparison put facts back: how long to wait after its end before they are looked at again.
    pub(super) again_after: Option<Duration>,
    /// How long it waits otherwise.
    pub(super) every: Duration,
}

/// Why a comparison is due, if one is.
pub(super) fn due(state: &State, look: Look, moment: Moment) -> Option<Cause> {
    let replaced = state.stream_created.is_some_and(|created| created != look.created);
    let fell = state.last_sequence.is_some_and(|last| look.last_sequence < last);
    let idle = state.finished_at.map(|finished| state.now - finished);
    let has_waited = |wait: Duration| idle.is_none_or(|idle| idle >= wait);
    if moment.pause.is_some_and(|pause| !has_waited(pause)) {
        return None;
    }
    [
        (state.is_requested(), Cause::Request),
        (!moment.has_compared, Cause::Start),
        (replaced, Cause::StreamReplaced),
        (fell, Cause::SequenceFell),
        (moment.has_reconnected, Cause::Reconnect),
        (moment.pause.is_some(), Cause::Again),
        (moment.again_after.is_some_and(has_waited), Cause::Again),
        (has_waited(moment.every), Cause::Schedule),
    ]
    .into_iter()
    .find_map(|(is_due, cause)| is_due.then_some(cause))
}

#[cfg(test)]
mod tests;
