//! What the stream holds, message by message, as far as a service may look: the state of the stream, and one message by its
//! sequence. Asked of the leader of the stream, so that a replica that lags behind is never taken for a loss.

use std::time::Duration;

use async_nats::Client;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::json;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::broker::{Broker, STREAM};

/// The error of JetStream for a sequence without a message.
const NO_MESSAGE_FOUND: u64 = 10_037;

/// A stream at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// When it was created: a stream that was deleted and made again counts its sequences anew.
    pub(super) created: OffsetDateTime,
    /// The lowest sequence that it keeps; what is below has expired.
    pub(super) first_sequence: i64,
    /// The highest sequence that it has given out.
    pub(super) last_sequence: i64,
    /// How long it keeps a message; `None` is for ever.
    pub(super) max_age: Option<Duration>,
}

/// Why the stream cannot be looked at.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum LookError {
    #[error("the stream {STREAM} cannot be looked at ({0})")]
    Stream(String),
    #[error(
        "message {sequence} of the stream {STREAM} cannot be read ({why}); a missing permission looks like this too"
    )]
    Message { sequence: i64, why: String },
}

/// Looks at the stream.
pub(super) async fn look(broker: &Broker) -> Result<Look, LookError> {
    let stream = broker.connection().jetstream.get_stream(STREAM).await;
    let stream = stream.map_err(|error| LookError::Stream(error.to_string()))?;
    let info = stream.cached_info();
    Ok(Look {
        created: in_microseconds(info.created),
        first_sequence: i64::try_from(info.state.first_sequence).unwrap_or(i64::MAX),
        last_sequence: i64::try_from(info.state.last_sequence).unwrap_or(i64::MAX),
        max_age: Some(info.config.max_age).filter(|age| !age.is_zero()),
    })
}

/// As the database keeps an instant, or no stream would be the one that was remembered.
fn in_microseconds(instant: OffsetDateTime) -> OffsetDateTime {
    instant.truncate_to_microsecond()
}

/// The answer to a request for one message.
#[derive(Debug, Deserialize)]
struct Answer {
    message: Option<Message>,
    error: Option<ApiError>,
}

#[derive(Debug, Deserialize)]
struct Message {
    /// The header block, in base64.
    #[serde(default)]
    hdrs: String,
}

#[derive(Debug, Deserialize)]
struct ApiError {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

/// The id of the message at a sequence; `None` when there is no message, or one that is not a fact.
pub(super) async fn id_at(client: &Client, sequence: i64) -> Result<Option<Uuid>, LookError> {
    let failed = |why: String| LookError::Message { sequence, why };
    let request = json!({ "seq": sequence }).to_string();
    let answer = client.request(format!("$JS.API.STREAM.MSG.GET.{STREAM}"), request.into()).await;
    let answer = answer.map_err(|error| failed(error.to_string()))?;
    let answer: Answer = serde_json::from_slice(&answer.payload).map_err(|error| failed(error.to_string()))?;
    match (answer.message, answer.error) {
        (Some(message), _) => Ok(id_in(&message.hdrs)),
        (None, Some(error)) if error.err_code == NO_MESSAGE_FOUND => Ok(None),
        (None, Some(error)) => Err(failed(format!("{} ({})", error.description, error.err_code))),
        (None, None) => Err(failed("an answer with neither message nor error".to_owned())),
    }
}

/// The id in a header block. Read by hand: the client's parser is made for blocks that its server checked, and this may be
/// a message that somebody put there in another way.
fn id_in(headers: &str) -> Option<Uuid> {
    let block = BASE64_STANDARD.decode(headers).ok()?;
    let block = String::from_utf8_lossy(&block);
    let mut ids = block.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case(envelope::headers::NATS_MSG_ID).then(|| value.trim().parse().ok())?
    });
    ids.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_found_in_a_header_block_whatever_else_is_in_it() {
        let id = Uuid::from_u128(7);
        let encoded = |block: &str| BASE64_STANDARD.encode(block);
        let block = format!("NATS/1.0\r\nce-type: a:b\r\nNats-Msg-Id: {id}\r\nx: \u{1}\r\n\r\n");
        assert_eq!(id_in(&encoded(&block)), Some(id));
        assert_eq!(id_in(&encoded(&block.to_lowercase())), Some(id), "names have no case");
        assert_eq!(id_in(&encoded("NATS/1.0\r\nNats-Msg-Id: order-7\r\n\r\n")), None, "not the id of a fact");
        assert_eq!(id_in(&encoded("NATS/1.0\r\n\r\n")), None);
        assert_eq!(id_in(""), None, "a message without headers");
        assert_eq!(id_in("?"), None);
    }
}
