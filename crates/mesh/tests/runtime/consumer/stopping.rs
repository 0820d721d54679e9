//! Stopping in order, as after SIGTERM: what is in hand is finished or handed back, and whoever comes next goes on at once.

use std::time::Duration;

use serde_json::json;
use testkit::{Nats, NatsOptions, Postgres, PostgresOptions, wait};
use tokio::time::Instant;
use uuid::Uuid;

use super::faults::until_entered;
use crate::probe::{Act, AnswerOpened, Opened, service};
use crate::world::{PATIENCE, World, declare_stream, durable, stream};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_under_load_lose_nothing_repeat_nothing_and_wait_for_nothing() {
    const FACTS: u32 = 4_000;
    let nats = Nats::start(NatsOptions::new()).await.unwrap();
    // A message that is neither acknowledged nor handed back would hold up its key for longer than the test may take.
    let mut slow = durable();
    slow["ack_wait"] = json!(120_000_000_000_u64);
    declare_stream(&nats, &stream(), &slow).await;
    let world = World::around(nats).await;
    let writer = world.writer().await;
    let facts: Vec<Opened> = (0..FACTS).map(|n| Opened { id: Uuid::from_u128(u128::from(n % 300) + 1), n }).collect();
    for chunk in facts.chunks(500) {
        writer.publish(chunk).await.unwrap();
    }
    let mut entered = 0;
    for _ in 0..6 {
        let subscriber = AnswerOpened::script(|_| Act::Linger(Duration::from_millis(2)));
        let running = world.run(service().subscribe(subscriber.clone())).await;
        let started = Instant::now();
        until_entered(&subscriber, 1).await;
        assert!(started.elapsed() < Duration::from_secs(2), "the first fact after {:?}", started.elapsed());
        until_entered(&subscriber, 400).await;
        running.stop().await.unwrap();
        entered += subscriber.entries().len();
    }
    let subscriber = AnswerOpened::always();
    let running = world.run(service().subscribe(subscriber.clone())).await;
    world.until_count("select count(*) from effect", i64::from(FACTS)).await;
    entered += subscriber.entries().len();
    assert_eq!(entered, FACTS as usize, "no handler was entered twice for a fact");
    assert_eq!(world.count("select count(distinct n) from effect").await, i64::from(FACTS));
    assert_eq!(world.count("select count(*) from mesh.dead_letter").await, 0);
    running.stop().await.unwrap();
    writer.stop().await.unwrap();
}

/// Neither the hints nor the reports that nobody takes may hold up the stop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_stops_in_time_while_nats_is_away_and_the_next_one_goes_on() {
    let world = World::start().await;
    let subscriber = AnswerOpened::script(|received| match received.attempt {
        1 => Act::Fail("waits in its lane"),
        _ => Act::Answer,
    })
    .policy(|policy| policy.backoff.first = Duration::from_secs(60));
    let running = world.run(service().subscribe(subscriber.clone())).await;
    let opened = |n: u32| Opened { id: Uuid::from_u128(u128::from(n) + 1), n };
    running.publish(&(0..100).map(opened).collect::<Vec<_>>()).await.unwrap();
    until_entered(&subscriber, 100).await;
    world.nats.kill9().await;
    for n in 100..400 {
        running.publish(&[opened(n)]).await.unwrap();
    }
    let stopping = Instant::now();
    running.stop().await.unwrap();
    assert!(stopping.elapsed() < Duration::from_secs(8), "{:?}", stopping.elapsed());

    // The next one starts without NATS.
    let running = world.run(service().subscribe(AnswerOpened::always())).await;
    world.nats.restart().await.unwrap();
    world.until_count("select count(*) from effect", 400).await;
    world.until_published().await;
    assert_eq!(world.count("select count(*) from mesh.dead_letter").await, 0);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_stops_in_time_while_its_database_is_away_and_the_next_one_goes_on() {
    let postgres = Postgres::start(PostgresOptions::new().without_fsync()).await.unwrap();
    let world = World::on(&postgres).await;
    let subscriber = AnswerOpened::script(|_| Act::Linger(Duration::from_millis(20)));
    let running = world.run(service().subscribe(subscriber.clone())).await;
    let facts: Vec<Opened> = (0..1_000).map(|n| Opened { id: Uuid::from_u128(u128::from(n) + 1), n }).collect();
    running.publish(&facts).await.unwrap();
    until_entered(&subscriber, 100).await;
    postgres.kill9().await;
    let stopping = Instant::now();
    running.stop().await.unwrap();
    assert!(stopping.elapsed() < Duration::from_secs(12), "{:?}", stopping.elapsed());
    postgres.restart().await.unwrap();

    let running = world.run(service().subscribe(AnswerOpened::always())).await;
    wait::until("all effects", PATIENCE, || async {
        match sqlx::query_scalar::<_, i64>("select count(*) from effect").fetch_one(world.pool()).await {
            Ok(1_000) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
    .unwrap();
    assert_eq!(world.count("select count(distinct n) from effect").await, 1_000);
    assert_eq!(world.count("select count(*) from mesh.dead_letter").await, 0);
    running.stop().await.unwrap();
}
