//! A burst on healthy servers, and what a message looks like on the wire.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::json;
use testkit::{Nats, NatsOptions};
use uuid::Uuid;

use crate::probe::{AnswerOpened, Opened, service};
use crate::world::{Stored, World, declare_stream, durable, stream};

/// Each key's facts on the stream are numbered 1, 2, 3 and so on.
pub(crate) fn assert_ordered(stored: &[Stored]) {
    let mut last: HashMap<&str, u64> = HashMap::new();
    for message in stored {
        let number: u64 = message.header("ce-sequence").parse().unwrap();
        let last = last.entry(message.header("ce-subject")).or_default();
        assert_eq!(number, *last + 1, "key {} at {}", message.header("ce-subject"), message.sequence);
        *last = number;
    }
}

/// The ids on the stream, each there once.
pub(crate) fn ids_once(stored: &[Stored]) -> BTreeSet<Uuid> {
    let ids: BTreeSet<Uuid> = stored.iter().map(Stored::id).collect();
    assert_eq!(ids.len(), stored.len(), "an id is on the stream twice");
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_is_published_once_and_in_the_order_of_each_key() {
    const KEYS: u128 = 500;
    let nats = Nats::start(NatsOptions::new()).await.unwrap();
    // The server forgets ids at once, so that a second publish of a fact would be seen.
    let mut forgetful = stream();
    forgetful["duplicate_window"] = json!(100_000_000);
    declare_stream(&nats, &forgetful, &durable()).await;
    let world = World::around(nats).await;
    let running = Arc::new(world.run(service()).await);
    let writers = (0..8_u32).map(|task| {
        let running = Arc::clone(&running);
        tokio::spawn(async move {
            for round in 0..50_u32 {
                let at = u128::from(task * 50 + round) * 50;
                let facts: Vec<Opened> =
                    (0..50).map(|n| Opened { id: Uuid::from_u128((at + n) % KEYS + 1), n: round }).collect();
                running.publish(&facts).await.unwrap();
            }
        })
    });
    futures_util::future::join_all(writers).await.into_iter().for_each(|writer| writer.unwrap());
    world.until_published().await;

    let stored = world.stored().await;
    assert_eq!(stored.len(), 20_000);
    ids_once(&stored);
    assert_ordered(&stored);
    // What the relay wrote down is where each fact is.
    let sent: Vec<(i64, Uuid)> = sqlx::query_as("select stream_sequence, event_id from mesh.outbox_sent order by 1")
        .fetch_all(world.pool())
        .await
        .unwrap();
    let on_stream: Vec<(i64, Uuid)> = stored.iter().map(|message| (message.sequence as i64, message.id())).collect();
    assert_eq!(sent, on_stream);
    Arc::into_inner(running).unwrap().stop().await.unwrap();
}

#[tokio::test]
async fn a_message_on_the_wire_has_the_headers_of_the_contract() {
    let world = World::start().await;
    let running = world.run(service().subscribe(AnswerOpened::always())).await;
    let id = Uuid::from_u128(7);
    running.publish(&[Opened { id, n: 1 }]).await.unwrap();
    world.until_count("select count(*) from mesh.outbox_sent", 2).await;

    let stored = world.stored().await;
    let [root, answer] = &stored[..] else { panic!("{stored:?}") };
    let key = id.to_string();
    // Key 00000000-0000-0000-0000-000000000007 by FNV-1a modulo 64, as computed apart from this code.
    assert_eq!(answer.subject, format!("evt.probe.answered.v1.{}", fnv1a_64_buckets(&key)));
    assert_eq!(answer.body, format!(r#"{{"id":"{key}","n":1}}"#).into_bytes());
    let occurred_at: String = sqlx::query_scalar(
        r#"select to_char(occurred_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') from mesh.outbox_sent
           where stream_sequence = 2"#,
    )
    .fetch_one(world.pool())
    .await
    .unwrap();
    let mut expected = vec![
        ("Nats-Expected-Stream", "EVT"),
        ("Nats-Msg-Id", answer.header("ce-id")),
        ("ce-causationid", root.header("ce-id")),
        ("ce-correlationid", &key),
        ("ce-datacontenttype", "application/json"),
        ("ce-dataschema", "urn:mesh:schema:probe.answered:1:0"),
        ("ce-emitter", "probe/answer-opened@test"),
        ("ce-id", answer.header("ce-id")),
        ("ce-partitionkey", &key),
        ("ce-sequence", "00000000000000000002"),
        ("ce-source", "urn:mesh:probe"),
        ("ce-specversion", "1.0"),
        ("ce-subject", &key),
        ("ce-time", &occurred_at),
        ("ce-type", "probe.answered.v1"),
        ("content-type", "application/json"),
        ("mesh-hops", "1"),
    ];
    expected.sort_unstable();
    let mut seen: Vec<(&str, &str)> = answer
        .headers
        .iter()
        .flat_map(|(name, values)| values.iter().map(move |value| (name.as_ref(), value.as_str())))
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, expected);
    assert!(root.header("ce-causationid").is_empty());
    running.stop().await.unwrap();
}

fn fnv1a_64_buckets(key: &str) -> u32 {
    key.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)) % 64
}
