//! Messages that nobody can read, among others that are fine.

use std::time::Duration;

use envelope::RawMessage;
use mesh::testing::{Running, message};
use uuid::Uuid;

use crate::probe::{AnswerOpened, Opened, service};
use crate::world::World;

fn fact(key: u128) -> RawMessage {
    message(&Opened { id: Uuid::from_u128(key), n: 1 }, Uuid::from_u128(key << 64)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn poison_is_parked_with_its_bytes_and_the_facts_around_it_are_handled() {
    let world = World::start().await;
    let running = world.run(service().subscribe(AnswerOpened::always())).await;
    let poison = [
        RawMessage { headers: Vec::new(), ..fact(101) },
        RawMessage { body: b"\xff\x00 no json".to_vec(), ..fact(102) },
        RawMessage { body: Vec::new(), ..fact(103) },
        RawMessage { body: vec![b'['; 60_000], ..fact(104) },
        RawMessage { subject: "evt.probe.opened.v1.64".to_owned(), ..fact(105) },
        RawMessage { subject: "evt.nonsense".to_owned(), ..fact(106) },
        RawMessage { headers: vec![("ce-id".to_owned(), "\u{e4}\u{1f980}".to_owned())], ..fact(107) },
    ];
    for (n, message) in poison.iter().enumerate() {
        world.publish(&fact(n as u128 + 1), &format!("good-{n}")).await;
        world.publish(message, &format!("bad-{n}")).await;
    }
    world.until_count("select count(*) from effect", 7).await;
    world.until_count("select count(*) from mesh.dead_letter where state = 'parked'", 7).await;
    let kept: Vec<(String, Vec<u8>)> =
        sqlx::query_as("select subject, payload from mesh.dead_letter order by stream_sequence")
            .fetch_all(world.pool())
            .await
            .unwrap();
    let sent: Vec<(String, Vec<u8>)> =
        poison.iter().map(|message| (message.subject.clone(), message.body.clone())).collect();
    assert_eq!(kept, sent);
    world.until_acknowledged(14 + 7).await;
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_newer_major_that_no_deployment_comes_for_is_parked_after_the_window() {
    let world = World::start().await;
    let mut config = world.config();
    config.process.newer_version_wait = Duration::from_secs(3);
    let running = Running::start(service().subscribe(AnswerOpened::always()), config).await.unwrap();
    let mut newer = fact(1);
    newer.subject = newer.subject.replace(".v1.", ".v2.");
    for (_, value) in &mut newer.headers {
        *value = value.replace("probe.opened.v1", "probe.opened.v2").replace("probe.opened:1:0", "probe.opened:2:0");
    }
    world.publish(&newer, "newer").await;
    world.publish(&fact(2), "known").await;
    world.until_count("select count(*) from effect", 1).await;
    assert_eq!(world.count("select count(*) from mesh.dead_letter").await, 0, "it waits for a build that knows it");
    world.until_count("select count(*) from mesh.dead_letter where reason = 'newer_version' and attempts = 0", 1).await;
    let waited = "select extract(epoch from clock_timestamp() - parked_at)::bigint from mesh.dead_letter";
    assert!(world.count(waited).await < 3);
    running.stop().await.unwrap();
}
