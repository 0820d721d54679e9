//! One effect per fact, however often and wherever it arrives.

use mesh::config::RelayMode;
use mesh::testing::{Running, message};
use mesh::{Failure, Handled, Received, Subscriber, Tx};
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

/// A second subscriber of the same fact.
struct Noting;

impl Subscriber for Noting {
    type Event = Opened;
    const NAME: &'static str = "noting";

    async fn handle(&self, _: &mut Tx, _: Received<Opened>) -> Result<Handled, Failure> {
        Ok(Handled::NoEffect("noted"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscribers_of_one_fact_settle_each_for_itself() {
    let world = World::start().await;
    let failing =
        AnswerOpened::script(|received| if received.attempt < 3 { Act::Fail("at first") } else { Act::Answer });
    let running = world.run(service().subscribe(failing.clone()).subscribe(Noting)).await;
    running.publish(&[Opened { id: Uuid::from_u128(1), n: 1 }]).await.unwrap();
    world.until_count("select count(*) from effect", 1).await;
    assert_eq!(failing.entries().len(), 3);
    let settled: Vec<(String, Option<String>)> =
        sqlx::query_as("select subscriber, no_effect from mesh.inbox order by 1")
            .fetch_all(world.pool())
            .await
            .unwrap();
    let expected = [("answer-opened".to_owned(), None), ("noting".to_owned(), Some("noted".to_owned()))];
    assert_eq!(settled, expected);
    world.until_acknowledged(2).await;
    running.stop().await.unwrap();
}
