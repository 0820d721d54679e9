//! How far the service has come in the stream, in the words of the server: shared by all replicas, whoever pulled what.
//!
//! The acknowledgement floor of the durable is the one watermark that stays honest under lanes, redeliveries and several
//! replicas: the server moves it over a message only when that and everything before it is acknowledged, which a service
//! does only after the delivery is settled or kept. `max_deliver` is unlimited, which the start verifies, so no message is
//! ever dropped below it. One request a second for it is cheap; a watermark of our own would need every replica's view.

use std::time::Duration;

use async_nats::Client;
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::broker::STREAM;
use crate::clock::Clock;

/// A heartbeat waits no longer than this for it.
const ANSWER_WITHIN: Duration = Duration::from_millis(600);

/// The durable as the server sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    /// Every message of the durable's filters up to this stream sequence is acknowledged.
    pub(super) watermark: u64,
    /// Messages that were not delivered yet.
    pub(super) pending: u64,
    /// Messages that were delivered and are not acknowledged, to any replica.
    pub(super) unacknowledged: u64,
    /// Clock of this process minus that of the server, to half of a round trip; nothing when the server does not say.
    pub(super) clock_offset_ms: Option<i64>,
}

#[derive(Deserialize)]
struct Info {
    ack_floor: Floor,
    num_pending: u64,
    num_ack_pending: u64,
    ts: Option<String>,
}

#[derive(Deserialize)]
struct Floor {
    stream_seq: u64,
}

/// Asks for the durable `name`; nothing when there is no answer.
pub(super) async fn look(client: &Client, name: &str, clock: &dyn Clock) -> Option<Position> {
    let asked_at = clock.now().unix_millis();
    let asked = client.request(format!("$JS.API.CONSUMER.INFO.{STREAM}.{name}"), "".into());
    let answer = tokio::time::timeout(ANSWER_WITHIN, asked).await.ok()?.ok()?;
    read(&answer.payload, asked_at, clock.now().unix_millis())
}

fn read(answer: &[u8], asked_at: i64, answered_at: i64) -> Option<Position> {
    let info: Info = serde_json::from_slice(answer).ok()?;
    let server = info.ts.as_deref().and_then(|ts| OffsetDateTime::parse(ts, &Rfc3339).ok());
    let server_ms = server.and_then(|server| i64::try_from(server.unix_timestamp_nanos() / 1_000_000).ok());
    Some(Position {
        watermark: info.ack_floor.stream_seq,
        pending: info.num_pending,
        unacknowledged: info.num_ack_pending,
        clock_offset_ms: server_ms.map(|server| asked_at.midpoint(answered_at) - server),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_the_watermark_and_half_a_round_trip_is_taken_off_the_offset() {
        let answer = br#"{"type":"io.nats.jetstream.api.v1.consumer_info_response","stream_name":"EVT","name":"orders",
            "delivered":{"consumer_seq":9,"stream_seq":40},"ack_floor":{"consumer_seq":6,"stream_seq":31},
            "num_ack_pending":3,"num_redelivered":1,"num_waiting":1,"num_pending":2,"ts":"2026-01-31T09:30:00.5Z"}"#;
        // 2026-01-31T09:30:00Z
        let start = 1_769_851_800_000;
        let position = read(answer, start + 490, start + 530).unwrap();
        assert_eq!(position, Position { watermark: 31, pending: 2, unacknowledged: 3, clock_offset_ms: Some(10) });
        let error = br#"{"type":"x","error":{"code":404,"err_code":10014,"description":"consumer not found"}}"#;
        assert_eq!(read(error, 0, 0), None);
    }
}
