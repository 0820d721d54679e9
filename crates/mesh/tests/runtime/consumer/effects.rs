//! One effect per fact, however often and wherever it arrives.

use mesh::config::RelayMode;
use mesh::testing::{Running, message};
use uuid::Uuid;

use crate::probe::{Act, AnswerOpened, Opened, SERVICE, service};
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicates_on_the_stream_have_one_effect_with_two_replicas() {
    let world = World::start().await;
    let subscriber = AnswerOpened::always();
    let first = world.run(service().subscribe(subscriber.clone())).await;
    let second = world.run(service().subscribe(subscriber.clone())).await;
    let facts: Vec<_> = (1..=50_u32)
        .map(|n| message(&Opened { id: Uuid::from_u128(n.into()), n }, Uuid::from_u128(u128::from(n) << 64)).unwrap())
        .collect();
    for copy in 0..6 {
        for (n, fact) in facts.iter().enumerate() {
            world.publish(fact, &format!("{copy}-{n}")).await;
        }
    }
    // Each answer is heard by nobody here, and acknowledged as well.
    world.until_acknowledged(350).await;
    assert_eq!(world.count("select count(*) from effect").await, 50);
    assert_eq!(world.count("select count(distinct event_id) from effect").await, 50);
    assert_eq!(world.count("select count(*) from mesh.inbox").await, 50);
    assert_eq!(world.count("select count(*) from mesh.outbox_sent").await, 50);
    assert_eq!(world.count("select count(*) from mesh.delivery_attempt").await, 0);
    assert_eq!(subscriber.entries().len(), 50, "the handler was entered once for each");
    first.stop().await.unwrap();
    second.stop().await.unwrap();
}

#[tokio::test]
async fn a_fact_that_nobody_hears_is_acknowledged_and_leaves_no_trace() {
    let world = World::start().await;
    let mut config = world.config();
    config.relay = RelayMode::Off;
    let running = Running::start(service().subscribe(AnswerOpened::script(|_| Act::Reject)), config).await.unwrap();
    let mut fact = message(&Opened { id: Uuid::from_u128(1), n: 1 }, Uuid::from_u128(1)).unwrap();
    fact.subject = fact.subject.replace("opened", "closed");
    world.publish(&fact, "closed").await;
    world.until_acknowledged(1).await;
    assert_eq!(world.count("select count(*) from mesh.inbox").await, 0);
    assert_eq!(world.count("select count(*) from mesh.dead_letter").await, 0);
    let metrics = reqwest::get(format!("http://{}/metrics", running.address())).await.unwrap().text().await.unwrap();
    let counted = metrics.lines().any(|line| line.starts_with("verdicts_total{") && line.contains("\"foreign\""));
    assert!(counted, "{SERVICE}: {metrics}");
    running.stop().await.unwrap();
}
