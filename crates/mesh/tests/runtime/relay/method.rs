//! How rows travel: a backlog as an atomic batch, a few one by one, and one by one when a batch is refused.

use std::collections::HashSet;

use uuid::Uuid;

use super::burst::{assert_ordered, ids_once};
use crate::probe::{Opened, service};
use crate::world::World;

#[tokio::test]
async fn a_backlog_travels_as_one_atomic_batch_and_a_few_rows_one_by_one() {
    let world = World::start().await;
    let writer = world.writer().await;
    let facts: Vec<Opened> = (1..=300).map(|n| Opened { id: Uuid::from_u128(n), n: 1 }).collect();
    writer.publish(&facts).await.unwrap();
    let running = world.run(service()).await;
    world.until_published().await;
    let stored = world.stored().await;
    let batches: HashSet<&str> = stored.iter().map(|message| message.header("Nats-Batch-Id")).collect();
    assert_eq!((stored.len(), batches.len()), (300, 1), "{batches:?}");
    assert!(!batches.contains(""));

    running.publish(&facts[..3]).await.unwrap();
    world.until_published().await;
    let stored = world.stored().await;
    assert!(stored[300..].iter().all(|message| message.header("Nats-Batch-Id").is_empty()), "three rows");
    assert_eq!(stored.len(), 303);
    running.stop().await.unwrap();
    writer.stop().await.unwrap();
}

/// The relay died between the acknowledgement and its note of it: the stream knows one id of the backlog.
#[tokio::test]
async fn a_batch_with_an_id_that_the_stream_knows_is_published_row_by_row() {
    let world = World::start().await;
    let writer = world.writer().await;
    let facts: Vec<Opened> = (0..120).map(|n| Opened { id: Uuid::from_u128(n % 40 + 1), n: 1 }).collect();
    writer.publish(&facts).await.unwrap();
    let (known, subject): (Uuid, String) =
        sqlx::query_as("select event_id, subject from mesh.outbox order by seq limit 1")
            .fetch_one(world.pool())
            .await
            .unwrap();
    let mut headers = async_nats::HeaderMap::new();
    for name in ["Nats-Msg-Id", "ce-id"] {
        headers.insert(name, known.to_string().as_str());
    }
    headers.insert("ce-sequence", "1");
    headers.insert("ce-subject", Uuid::from_u128(1).to_string().as_str());
    world.jetstream().await.publish_with_headers(subject, headers, "{}".into()).await.unwrap().await.unwrap();

    let running = world.run(service()).await;
    world.until_published().await;
    let stored = world.stored().await;
    assert_eq!(ids_once(&stored).len(), 120);
    assert_ordered(&stored);
    let noted: i64 = sqlx::query_scalar("select stream_sequence from mesh.outbox_sent where event_id = $1")
        .bind(known)
        .fetch_one(world.pool())
        .await
        .unwrap();
    assert_eq!(noted, 1, "where the first copy is");
    assert_eq!(world.count("select count(*) from mesh.outbox_sent where attempts > 0").await, 0, "no row is at fault");
    running.stop().await.unwrap();
    writer.stop().await.unwrap();
}
