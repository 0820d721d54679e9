//! What is lost comes back, under its own id, once; what has expired does not.

use std::collections::HashSet;

use serde_json::json;
use testkit::{Nats, NatsOptions};
use uuid::Uuid;

use super::store::StoreCopy;
use super::{assert_effects_once, compare, facts, ids, until_settled, until_stored};
use crate::probe::{AnswerOpened, service};
use crate::relay::burst::{assert_ordered, ids_once};
use crate::world::{Stored, World, declare_stream, durable, stream};

const DAY_NANOS: u64 = 86_400_000_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_that_a_restored_stream_has_lost_are_published_again_and_have_no_second_effect() {
    let world = World::start().await;
    let subscriber = AnswerOpened::always();
    let running = world.run(service().subscribe(subscriber.clone())).await;
    running.publish(&facts(0..50)).await.unwrap();
    until_settled(&world, 50).await;
    let copy = StoreCopy::take(&world).await;
    running.publish(&facts(50..100)).await.unwrap();
    until_settled(&world, 100).await;
    let before = world.stored().await;
    assert_eq!(before.len(), 200, "a fact and its answer each");
    world.nats.term().await.unwrap();
    copy.put_back(&world);
    world.nats.restart().await.unwrap();

    let after = until_stored(&world, &ids(&before)).await;
    ids_once(&after);
    assert_ordered(&after);
    assert_eq!(bodies(&after), bodies(&before));
    world.until_published().await;
    world.until_acknowledged(200).await;
    assert_effects_once(&world, 100).await;
    assert_eq!(subscriber.entries().len(), 100, "the inbox lets no repeat in");
    let answer = compare(&world).await;
    assert_eq!((&answer["lost"], &answer["error"]), (&json!(0), &json!(null)), "{answer}");
    assert_eq!(answer["republished_total"], 100);
    let metrics = reqwest::get(format!("http://{}/metrics", running.address())).await.unwrap().text().await.unwrap();
    let counted = metrics.lines().find_map(|line| line.strip_prefix("reconcile_republished_total "));
    assert!(counted.is_some_and(|count| count.parse::<u64>().unwrap() >= 100), "{metrics}");
    running.stop().await.unwrap();
}

/// Ids, headers of the fact and bodies, whatever their order.
fn bodies(stored: &[Stored]) -> HashSet<(Uuid, String, String, Vec<u8>)> {
    let fact = |message: &Stored| {
        let headers = [message.header("ce-time"), message.header("ce-sequence"), message.header("ce-type")].join(" ");
        (message.id(), message.subject.clone(), headers, message.body.clone())
    };
    stored.iter().map(fact).collect()
}

/// Facts that were committed during the outage are published at once, before the loss is known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_lost_comes_after_what_was_stored_meanwhile_and_has_one_effect_all_the_same() {
    let world = World::start().await;
    let running = world.run(service().subscribe(AnswerOpened::always())).await;
    running.publish(&facts(0..20)).await.unwrap();
    until_settled(&world, 20).await;
    let copy = StoreCopy::take(&world).await;
    running.publish(&facts(20..60)).await.unwrap();
    until_settled(&world, 60).await;
    let before = world.stored().await;
    world.nats.term().await.unwrap();
    copy.put_back(&world);
    running.publish(&facts(60..80)).await.unwrap();
    world.nats.restart().await.unwrap();

    let after = until_stored(&world, &ids(&before)).await;
    until_settled(&world, 80).await;
    ids_once(&after);
    assert_effects_once(&world, 80).await;
    // What came back is in the order of its key; ce-sequence tells where it belongs.
    let lost: HashSet<Uuid> = before[40..].iter().map(Stored::id).collect();
    let mut again: Vec<Stored> = after.into_iter().filter(|message| lost.contains(&message.id())).collect();
    assert_eq!(again.len(), 80);
    let order = |messages: &[Stored]| -> Vec<(String, String)> {
        let place =
            |message: &Stored| (message.header("ce-subject").to_owned(), message.header("ce-sequence").to_owned());
        messages.iter().map(place).collect()
    };
    let found = order(&again);
    again.sort_by_key(|message| message.header("ce-sequence").to_owned());
    for key in found.iter().map(|(key, _)| key).collect::<HashSet<_>>() {
        let of_key = |order: &[(String, String)]| -> Vec<String> {
            order.iter().filter(|(of, _)| of == key).map(|(_, number)| number.clone()).collect()
        };
        assert_eq!(of_key(&found), of_key(&order(&again)), "key {key}");
    }
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_was_made_anew_gets_everything_that_it_would_still_keep() {
    let nats = Nats::start(NatsOptions::new()).await.unwrap();
    let mut aging = stream();
    aging["max_age"] = json!(10 * DAY_NANOS);
    declare_stream(&nats, &aging, &durable()).await;
    let world = World::around(nats).await;
    let running = world.run(service().subscribe(AnswerOpened::always())).await;
    running.publish(&facts(0..60)).await.unwrap();
    until_settled(&world, 60).await;
    let before = world.stored().await;
    sqlx::query("update mesh.outbox_sent set sent_at = now() - interval '11 days' where stream_sequence <= 20")
        .execute(world.pool())
        .await
        .unwrap();
    world.jetstream().await.delete_stream(mesh::STREAM).await.unwrap();
    declare_stream(&world.nats, &aging, &durable()).await;

    let young: HashSet<Uuid> = before[20..].iter().map(Stored::id).collect();
    let after = until_stored(&world, &young).await;
    assert_eq!(ids(&after), young, "what is older has expired");
    ids_once(&after);
    world.until_published().await;
    assert_effects_once(&world, 60).await;
    assert_eq!(compare(&world).await["lost"], 0);
    running.stop().await.unwrap();
}

/// What is below the first sequence of the stream has been let go on purpose.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_stream_let_expire_is_no_loss() {
    let world = World::start().await;
    let running = world.run(service()).await;
    running.publish(&facts(0..20)).await.unwrap();
    world.until_published().await;
    world.jetstream().await.get_stream(mesh::STREAM).await.unwrap().purge().await.unwrap();
    let answer = compare(&world).await;
    assert_eq!((&answer["checked"], &answer["lost"]), (&json!(20), &json!(0)), "{answer}");
    assert_eq!(world.count("select count(*) from mesh.outbox").await, 0);
    assert_eq!(world.count("select count(*) from mesh.outbox_sent").await, 20);
    running.stop().await.unwrap();
}
