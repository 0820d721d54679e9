//! What a publish says about a row. Pure: every answer of the broker is decided here, once.

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::{self, ErrorCode, publish::PublishAck};

/// What is known about a row after its publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Stored, at this sequence. The only outcome that lets the row leave the outbox.
    Stored(i64),
    /// Nobody knows whether it was stored: send it again under the same id. Says nothing against the row.
    Unknown(String),
    /// The broker refused this row.
    Refused(String),
    /// Not stored: the server remembers the id of a message that it does not hold any more, and answers with the place
    /// where it was. It takes the fact when its duplicate window has passed.
    Remembered,
    /// Not sent, because an earlier row of its key was not stored.
    HeldBack,
}

/// From an acknowledgement. `duplicate` is success too: the sequence is that of the first copy. Unless that is `lost`, the
/// place where the stream is known not to hold the fact any more.
pub(super) fn from_ack(ack: &PublishAck, lost: Option<i64>) -> Outcome {
    match i64::try_from(ack.sequence) {
        Ok(sequence) if ack.duplicate && lost == Some(sequence) => Outcome::Remembered,
        Ok(sequence) if sequence > 0 => Outcome::Stored(sequence),
        _ => Outcome::Unknown(format!("acknowledged by `{}` without a sequence", ack.stream)),
    }
}

/// From an error of a single publish. A missing permission looks like a time-out here; the client's events tell.
pub(super) fn from_error(error: &PublishError) -> Outcome {
    match error.kind() {
        // No leader, a restart, a lost connection, a full window: all pass.
        PublishErrorKind::StreamNotFound
        | PublishErrorKind::TimedOut
        | PublishErrorKind::BrokenPipe
        | PublishErrorKind::MaxAckPending => Outcome::Unknown(error.to_string()),
        PublishErrorKind::MaxPayloadExceeded => Outcome::Refused(error.to_string()),
        PublishErrorKind::WrongLastMessageId | PublishErrorKind::WrongLastSequence | PublishErrorKind::Other => {
            match server_error(error) {
                Some(server) => from_server_error(server),
                None => Outcome::Unknown(error.to_string()),
            }
        }
    }
}

/// Errors that come with a 4xx status and still say nothing about the message.
const PASSING: [ErrorCode; 5] = [
    ErrorCode::ACCOUNT_RESOURCES_EXCEEDED,
    ErrorCode::STREAM_NOT_FOUND,
    // The subject belongs to another stream: the set-up is wrong, not the fact.
    ErrorCode::STREAM_NOT_MATCH,
    ErrorCode::STREAM_SEALED,
    // The first copy of the message is still being replicated.
    ErrorCode(10158),
];

/// From an error that the stream itself answered: 5xx passes (no space, no leader), and so do a few others; the rest is
/// about the message.
pub(super) fn from_server_error(error: &jetstream::Error) -> Outcome {
    let text = error.to_string();
    let passes = error.code() >= 500 || error.code() == 429 || PASSING.contains(&error.error_code());
    if passes { Outcome::Unknown(text) } else { Outcome::Refused(text) }
}

fn server_error(error: &PublishError) -> Option<&jetstream::Error> {
    std::error::Error::source(error)?.downcast_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(code: usize, err_code: u64) -> jetstream::Error {
        let json = serde_json::json!({ "code": code, "err_code": err_code, "description": "said the server" });
        serde_json::from_value(json).expect("an error as the server writes it")
    }

    #[test]
    fn only_a_sequence_above_zero_is_success() {
        let ack = |sequence, duplicate| {
            let json = serde_json::json!({ "stream": "EVT", "seq": sequence, "duplicate": duplicate });
            from_ack(&serde_json::from_value(json).expect("an ack as the server writes it"), Some(9))
        };
        assert_eq!(ack(7, false), Outcome::Stored(7));
        assert_eq!(ack(7, true), Outcome::Stored(7));
        assert!(matches!(ack(0, true), Outcome::Unknown(_)));
        assert_eq!(ack(9, true), Outcome::Remembered, "a copy that is known to be gone is no copy");
        assert_eq!(ack(9, false), Outcome::Stored(9), "stored anew, where it was before by chance");
    }

    #[test]
    fn what_passes_by_itself_says_nothing_against_the_row() {
        for kind in [PublishErrorKind::StreamNotFound, PublishErrorKind::TimedOut, PublishErrorKind::BrokenPipe] {
            assert!(matches!(from_error(&PublishError::new(kind)), Outcome::Unknown(_)), "{kind:?}");
        }
        let full = answered(503, 10077);
        assert_eq!(full.error_code(), ErrorCode(10077));
        assert!(matches!(from_server_error(&full), Outcome::Unknown(_)), "a full stream is backpressure");
        for code in [10002, 10059, 10060, 10109, 10158] {
            assert!(matches!(from_server_error(&answered(400, code)), Outcome::Unknown(_)), "{code}");
        }
    }

    #[test]
    fn a_refusal_of_this_message_counts_against_the_row() {
        let too_large = answered(400, 10054);
        let error = PublishError::with_source(PublishErrorKind::Other, too_large);
        assert!(matches!(from_error(&error), Outcome::Refused(_)));
    }
}
