//! One atomic batch: all rows are stored together or none is, with one fsync. The client library has no publisher for it.

use async_nats::header::{HeaderMap, NATS_BATCH_COMMIT, NATS_BATCH_COMMIT_FINAL, NATS_BATCH_ID, NATS_BATCH_SEQUENCE};
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::response::Response;
use async_nats::{Request, client::RequestErrorKind};

use super::outcome::{self, Outcome};
use super::publish::Since;
use super::row::Row;
use crate::broker::{ACK_TIMEOUT, Broker};
use crate::failpoints;

/// How a batch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BatchEnd {
    /// Stored; the rows have consecutive sequences from this one.
    Stored(i64),
    /// Nobody knows.
    Unknown(String),
    /// Nothing of it was stored. Single messages will tell which row is at fault.
    Refused(String),
}

/// Publishes the rows as one batch.
pub(super) async fn publish(broker: &Broker, id: &str, rows: &[Row]) -> BatchEnd {
    let client = broker.connection().client;
    let events = broker.events();
    let since = Since::now(events);
    let Some(last) = rows.len().checked_sub(1) else { return BatchEnd::Refused("an empty batch".to_owned()) };
    for (index, row) in rows.iter().enumerate() {
        let headers = match marked(row, id, index, index == last) {
            Ok(headers) => headers,
            Err(error) => return BatchEnd::Refused(error),
        };
        if index < last {
            if let Err(error) = client.publish_with_headers(row.subject.clone(), headers, row.payload.clone()).await {
                return BatchEnd::Unknown(error.to_string());
            }
            failpoints::hit("relay.mid_batch");
            continue;
        }
        let request = Request::new().headers(headers).payload(row.payload.clone()).timeout(Some(ACK_TIMEOUT));
        let commit = client.send_request(row.subject.clone(), request);
        failpoints::hit("relay.after_publish_before_ack");
        return tokio::select! {
            answer = commit => match answer {
                Ok(message) => judge(&message.payload, rows.len()),
                Err(error) if error.kind() == RequestErrorKind::MaxPayloadExceeded => BatchEnd::Refused(error.to_string()),
                Err(error) => BatchEnd::Unknown(error.to_string()),
            },
            // A refused commit is never answered; a refused message before it is missing when the commit arrives.
            words = events.refused(since.refusals, &row.subject) => BatchEnd::Refused(words),
            () = events.disconnected_since(since.disconnects) => {
                BatchEnd::Unknown("the connection was lost before the acknowledgement".to_owned())
            }
        };
    }
    BatchEnd::Refused("an empty batch".to_owned())
}

/// The row's headers with the marks of its place in the batch.
fn marked(row: &Row, id: &str, index: usize, is_last: bool) -> Result<HeaderMap, String> {
    let mut headers = row.wire_headers().map_err(|error| error.to_string())?;
    let mut mark = |name: async_nats::HeaderName, value: &str| {
        let value: async_nats::HeaderValue = value.parse().map_err(|_| format!("batch mark {value:?}"))?;
        headers.insert(name, value);
        Ok::<(), String>(())
    };
    mark(NATS_BATCH_ID, id)?;
    mark(NATS_BATCH_SEQUENCE, &(index + 1).to_string())?;
    if is_last {
        mark(NATS_BATCH_COMMIT, NATS_BATCH_COMMIT_FINAL)?;
    }
    Ok(headers)
}

/// Reads the answer to the commit: the acknowledgement carries the sequence of the last message.
fn judge(answer: &[u8], rows: usize) -> BatchEnd {
    match serde_json::from_slice::<Response<PublishAck>>(answer) {
        Ok(Response::Ok(ack)) => match (outcome::from_ack(&ack, None), i64::try_from(rows)) {
            // Without the batch's own count the message was taken as a single one.
            (Outcome::Stored(last), Ok(count)) if ack.batch_size == Some(rows as u64) && last >= count => {
                BatchEnd::Stored(last - count + 1)
            }
            _ => BatchEnd::Unknown(format!("an acknowledgement of {:?} of {rows} messages", ack.batch_size)),
        },
        Ok(Response::Err { error }) if is_about_the_batch(error.error_code()) => BatchEnd::Refused(error.to_string()),
        Ok(Response::Err { error }) => match outcome::from_server_error(&error) {
            Outcome::Refused(why) => BatchEnd::Refused(why),
            _ => BatchEnd::Unknown(error.to_string()),
        },
        Err(error) => BatchEnd::Unknown(format!("an answer that is no acknowledgement: {error}")),
    }
}

/// Errors of the batch as such, whatever their status: with these nothing was stored.
fn is_about_the_batch(code: ErrorCode) -> bool {
    [
        ErrorCode::ATOMIC_PUBLISH_DISABLED,
        ErrorCode::ATOMIC_PUBLISH_INCOMPLETE_BATCH,
        ErrorCode::ATOMIC_PUBLISH_TOO_LARGE_BATCH,
        ErrorCode::ATOMIC_PUBLISH_CONTAINS_DUPLICATE_MESSAGE,
    ]
    .contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_committed_batch_gives_every_row_its_sequence() {
        let answer = br#"{"stream":"EVT","seq":1207,"batch":"b1","count":200}"#;
        assert_eq!(judge(answer, 200), BatchEnd::Stored(1008));
    }

    #[test]
    fn an_acknowledgement_of_fewer_messages_proves_nothing() {
        let answer = br#"{"stream":"EVT","seq":1207,"batch":"b1","count":199}"#;
        assert!(matches!(judge(answer, 200), BatchEnd::Unknown(_)));
        assert!(matches!(judge(br#"{"stream":"EVT","seq":5}"#, 2), BatchEnd::Unknown(_)), "taken as a single message");
    }

    #[test]
    fn a_known_id_refuses_the_batch_and_a_full_stream_does_not() {
        let known =
            br#"{"error":{"code":400,"err_code":10201,"description":"batch publish contains duplicate message id"}}"#;
        assert!(matches!(judge(known, 2), BatchEnd::Refused(_)));
        let full = br#"{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"}}"#;
        assert!(matches!(judge(full, 2), BatchEnd::Unknown(_)));
        assert!(matches!(judge(b"+OK", 2), BatchEnd::Unknown(_)));
    }
}
