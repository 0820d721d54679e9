//! Stopping in order, as after SIGTERM: what is in hand is finished or handed back, and whoever comes next goes on at once.

use std::time::Duration;

use serde_json::json;
use testkit::{Nats, NatsOptions};
use tokio::time::Instant;
use uuid::Uuid;

use super::faults::until_entered;
use crate::probe::{Act, AnswerOpened, Opened, service};
use crate::world::{World, declare_stream, durable, stream};

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
