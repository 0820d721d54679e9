//! A row that cannot be published holds back its own key, ends among the dead, and returns in its place.

use std::time::Duration;

use serde_json::json;
use testkit::{NatsOptions, NatsUser};
use tokio::time::Instant;
use uuid::Uuid;

use super::burst::{assert_ordered, ids_once};
use crate::dead_letters::asking::Operator;
use crate::probe::{Answered, Opened, SERVICE, service};
use crate::world::{World, elapse};

fn opened(key: u128, n: u32) -> Opened {
    Opened { id: Uuid::from_u128(key), n }
}

/// How many messages of a key are on the stream.
async fn on_stream(world: &World, key: u128) -> usize {
    let key = Uuid::from_u128(key).to_string();
    world.stored().await.iter().filter(|message| message.header("ce-subject") == key).count()
}

#[tokio::test]
async fn a_row_that_cannot_be_sent_dies_alone_and_its_key_waits_until_it_is_redriven() {
    let world = World::start().await;
    let writer = world.writer().await;
    writer.publish(&[opened(1, 1), opened(2, 1), opened(1, 2), opened(2, 2), opened(1, 3)]).await.unwrap();
    // Two attempts are left of ten.
    sqlx::query("update mesh.outbox set headers = 'no list', attempts = 8 where seq = 1")
        .execute(world.pool())
        .await
        .unwrap();
    let running = world.run(service()).await;
    world.until_count("select count(*) from mesh.outbox_dead", 1).await;
    let (attempts, error): (i32, String) = sqlx::query_as("select attempts, error from mesh.outbox_dead where seq = 1")
        .fetch_one(world.pool())
        .await
        .unwrap();
    assert_eq!((attempts, error.as_str()), (10, "the stored header list is no JSON array of pairs"));

    running.publish(&[opened(2, 3), opened(1, 4)]).await.unwrap();
    world.until_count("select count(*) from mesh.outbox_sent", 3).await;
    // Long enough for the relay to look again at what is dead, and for the floor to pass the dead row.
    elapse(Duration::from_millis(2_500)).await;
    assert_eq!(on_stream(&world, 2).await, 3);
    assert_eq!(on_stream(&world, 1).await, 0, "the later facts of the key wait");
    assert_eq!(world.count("select count(*) from mesh.outbox").await, 3);

    let operator = Operator::of(&world).await;
    let why = operator.ask("outbox.why", json!({ "key": Uuid::from_u128(1) })).await;
    let causes: Vec<_> = why["facts"].as_array().unwrap().iter().map(|fact| fact["cause"].as_str().unwrap()).collect();
    assert_eq!(causes, ["given_up", "behind_given_up", "behind_given_up", "behind_given_up"], "{why}");
    assert_eq!(why["facts"][3]["held_by"], why["facts"][0]["event_id"]);
    sqlx::query("update mesh.outbox_dead set headers = (select headers from mesh.outbox where seq = 3)")
        .execute(world.pool())
        .await
        .unwrap();
    let preview = operator.ask("outbox.preview", json!({})).await;
    assert_eq!(preview["eligible"], 1, "{preview}");
    let order = Operator::order(&preview, 1);
    for _ in 0..2 {
        let done = operator.ask("outbox.retry", order.clone()).await;
        assert_eq!(done["outcomes"], json!({ "returned": 1 }), "{done}");
    }
    world.until_published().await;
    let stored = world.stored().await;
    assert_eq!(stored.len(), 7);
    assert_ordered(&stored);
    running.stop().await.unwrap();
    writer.stop().await.unwrap();
}

/// The service may publish `opened` and nothing else.
async fn world_with_permissions() -> World {
    let probe = NatsUser::new(SERVICE)
        .publish(["evt.probe.opened.>", "$JS.API.>", "$JS.ACK.>", "mesh.wake.probe"])
        .subscribe(["_INBOX_probe.>", "mesh.>"])
        .inbox_prefix("_INBOX_probe");
    World::with(NatsOptions::new().users([probe])).await
}

/// Keys of one bucket group, so that their rows travel in the order in which they were committed.
fn keys_of_one_group() -> impl Iterator<Item = u128> {
    (1..).filter(|key| envelope::bucket(&Uuid::from_u128(*key).to_string()) < 4)
}

async fn a_backlog_with_a_forbidden_fact(behind: usize) {
    let world = world_with_permissions().await;
    let writer = world.writer().await;
    let keys: Vec<u128> = keys_of_one_group().take(40).collect();
    let (forbidden, others) = keys.split_last().unwrap();
    let facts: Vec<Opened> = others.iter().map(|key| opened(*key, 1)).collect();
    let (before, after) = facts.split_at(facts.len() - behind);
    writer.publish(before).await.unwrap();
    writer.publish(&[Answered { id: Uuid::from_u128(*forbidden), n: 1 }]).await.unwrap();
    if !after.is_empty() {
        writer.publish(after).await.unwrap();
    }
    sqlx::query("update mesh.outbox set attempts = 7 where event_type = 'probe.answered.v1'")
        .execute(world.pool())
        .await
        .unwrap();

    let begun = Instant::now();
    let running = world.run(service()).await;
    world.until_count("select count(*) from mesh.outbox_sent", 39).await;
    assert!(begun.elapsed() < Duration::from_secs(3), "the other keys waited {:?}", begun.elapsed());
    running.publish(&[opened(*forbidden, 2)]).await.unwrap();
    world.until_count("select count(*) from mesh.outbox_dead where attempts = 10", 1).await;
    let error: String = sqlx::query_scalar("select error from mesh.outbox_dead").fetch_one(world.pool()).await.unwrap();
    assert!(error.to_lowercase().contains("permissions violation for publish to \"evt.probe.answered."), "{error}");
    running.publish(&[opened(others[0], 2)]).await.unwrap();
    world.until_count("select count(*) from mesh.outbox_sent", 40).await;
    assert_eq!(on_stream(&world, *forbidden).await, 0, "what may be published waits behind what may not");
    ids_once(&world.stored().await);
    running.stop().await.unwrap();
    writer.stop().await.unwrap();
}

#[tokio::test]
async fn a_forbidden_fact_within_a_batch_holds_back_its_own_key_only() {
    a_backlog_with_a_forbidden_fact(19).await;
}

#[tokio::test]
async fn a_forbidden_fact_that_would_commit_a_batch_holds_back_its_own_key_only() {
    a_backlog_with_a_forbidden_fact(0).await;
}
