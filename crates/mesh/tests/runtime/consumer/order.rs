//! A fact that fails waits at the head of its key; the others go on.

use std::time::Duration;

use uuid::Uuid;

use crate::probe::{Act, AnswerOpened, Opened, service};
use crate::world::World;

fn opened(key: u128, n: u32) -> Opened {
    Opened { id: Uuid::from_u128(key), n }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn later_facts_of_a_key_wait_for_a_failing_one_and_other_keys_go_on() {
    let world = World::start().await;
    let subscriber = AnswerOpened::script(|received| {
        let failing = received.event.id == Uuid::from_u128(1) && received.event.n == 2 && received.attempt < 3;
        if failing { Act::Fail("not yet") } else { Act::Answer }
    })
    .policy(|policy| policy.backoff.first = Duration::from_millis(300));
    let running = world.run(service().subscribe(subscriber.clone())).await;
    let facts: Vec<Opened> = (1..=5).flat_map(|n| [1, 2, 3].map(|key| opened(key, n))).collect();
    running.publish(&facts).await.unwrap();
    world.until_count("select count(*) from effect", 15).await;

    let entries = subscriber.entries();
    let of_key = |key: u128| -> Vec<u32> {
        entries.iter().filter(|entry| entry.key == Uuid::from_u128(key)).map(|entry| entry.n).collect()
    };
    assert_eq!(of_key(1), [1, 2, 2, 2, 3, 4, 5]);
    assert_eq!(of_key(2), [1, 2, 3, 4, 5]);
    assert_eq!(of_key(3), [1, 2, 3, 4, 5]);
    let position = |key: u128, n: u32| {
        entries.iter().rposition(|entry| entry.key == Uuid::from_u128(key) && entry.n == n).unwrap()
    };
    assert!(position(2, 5) < position(1, 2) && position(3, 5) < position(1, 2), "the others did not wait");
    assert_eq!(world.count("select count(*) from mesh.delivery_attempt").await, 0);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_never_returns_gives_its_slot_to_others() {
    let world = World::start().await;
    let subscriber = AnswerOpened::script(|received| match received.event.id == Uuid::from_u128(1) {
        true => Act::Hang,
        false => Act::Answer,
    })
    .policy(|policy| policy.timeout = Duration::from_millis(300));
    let mut config = world.config();
    config.process.concurrency = 1;
    let running = mesh::testing::Running::start(service().subscribe(subscriber.clone()), config).await.unwrap();
    let facts: Vec<Opened> = (1..=30).map(|key| opened(key, 1)).collect();
    running.publish(&facts).await.unwrap();
    world.until_count("select count(*) from effect", 29).await;
    let entered = subscriber.entries().iter().filter(|entry| entry.key == Uuid::from_u128(1)).count();
    assert!(entered <= 2, "{entered}: perhaps with others, then alone, and not again while that has not ended");
    running.stop().await.unwrap();
}
