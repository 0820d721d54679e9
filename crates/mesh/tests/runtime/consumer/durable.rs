//! The durable is declared elsewhere: a service refuses one that is missing or has drifted, and waits for one that goes.

use async_nats::jetstream::stream::Stream;
use mesh::testing::Running;
use serde_json::{Value, json};
use testkit::{Nats, NatsOptions, wait};
use uuid::Uuid;

use crate::probe::{AnswerOpened, Opened, SERVICE, service};
use crate::world::{PATIENCE, World, declare_stream, durable, stream};

async fn start_with(change: impl FnOnce(&mut Value)) -> anyhow::Result<Running> {
    let nats = Nats::start(NatsOptions::new()).await.unwrap();
    let mut declared = durable();
    change(&mut declared);
    declare_stream(&nats, &stream(), &declared).await;
    let world = World::around(nats).await;
    Running::start(service().subscribe(AnswerOpened::always()), world.config()).await
}

#[tokio::test]
async fn a_durable_that_has_drifted_is_refused_by_the_name_of_the_field() {
    for (field, value) in [
        ("max_deliver", json!(5)),
        ("ack_policy", json!("all")),
        ("ack_wait", json!(1_000_000_000)),
        ("inactive_threshold", json!(60_000_000_000_u64)),
    ] {
        let refused = start_with(|durable| durable[field] = value).await.unwrap_err().to_string();
        assert!(refused.contains("durable consumer `probe`") && refused.contains(field), "{field}: {refused}");
        assert!(refused.contains("meshctl streams diff"), "the remedy: {refused}");
    }
    let elsewhere = start_with(|durable| durable["filter_subject"] = json!("evt.elsewhere.>")).await;
    let refused = elsewhere.unwrap_err().to_string();
    assert!(refused.contains("no filter for all of probe.opened.v1, which `answer-opened` hears"), "{refused}");
    start_with(|_| {}).await.unwrap().stop().await.unwrap();
}

#[tokio::test]
async fn a_durable_that_does_not_exist_is_refused_with_the_remedy() {
    let refused = start_with(|durable| {
        durable["name"] = json!("another");
        durable["durable_name"] = json!("another");
    });
    let refused = refused.await.unwrap_err().to_string();
    assert!(refused.contains("durable consumer `probe` on stream EVT does not exist"), "{refused}");
    assert!(refused.contains("run `meshctl streams apply`"), "{refused}");
}

/// The reason that `/readyz` gives for the consumer; empty while it holds.
async fn consumer_trouble(running: &Running) -> String {
    let answer: Value =
        reqwest::get(format!("http://{}/readyz", running.address())).await.unwrap().json().await.unwrap();
    let checks = answer["checks"].as_array().unwrap();
    let consumer = checks.iter().find(|check| check["name"] == "consumer").unwrap();
    assert_eq!(consumer["ok"].as_bool().unwrap(), consumer["detail"].is_null());
    consumer["detail"].as_str().unwrap_or_default().to_owned()
}

async fn until_trouble(running: &Running, part: &str) {
    wait::until("readiness to tell", PATIENCE, || async {
        let trouble = consumer_trouble(running).await;
        if trouble.contains(part) && trouble.is_empty() == part.is_empty() { Ok(()) } else { Err(trouble) }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_durable_that_is_deleted_shows_in_readiness_and_nothing_is_skipped_when_it_is_back() {
    let world = World::start().await;
    let subscriber = AnswerOpened::always();
    let running = world.run(service().subscribe(subscriber.clone())).await;
    let publish = async |n: u32| running.publish(&[Opened { id: Uuid::from_u128(n.into()), n }]).await.unwrap();
    publish(1).await;
    world.until_count("select count(*) from effect", 1).await;
    until_trouble(&running, "").await;

    let stream: Stream = world.jetstream().await.get_stream(mesh::STREAM).await.unwrap();
    stream.delete_consumer(SERVICE).await.unwrap();
    publish(2).await;
    until_trouble(&running, "durable consumer `probe` on stream EVT does not exist").await;
    publish(3).await;
    world.until_published().await;

    declare_stream(&world.nats, &crate::world::stream(), &durable()).await;
    world.until_count("select count(*) from effect", 3).await;
    until_trouble(&running, "").await;
    // It is delivered from the beginning, so the first fact once more.
    world.until_acknowledged(6).await;
    assert_eq!(subscriber.entries().len(), 3);
    running.stop().await.unwrap();
}
