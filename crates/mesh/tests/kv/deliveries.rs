//! One effect for each fact, whoever delivers it how often.

use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use crate::probe::{Act, SendNote, fact, service};
use crate::world::World;

fn ids(facts: u128) -> impl Iterator<Item = Uuid> {
    (1..=facts).map(|n| Uuid::from_u128(0xF000 + n))
}

#[tokio::test]
async fn a_fact_that_comes_again_has_one_effect_and_its_settlement_is_on_record() {
    let world = World::start().await;
    let subscriber = SendNote::script(|received| if received.event.n == 0 { Act::Done } else { Act::Nothing });
    let running = world.run(service(subscriber.clone())).await;
    let [first, second] = [Uuid::from_u128(0xF1), Uuid::from_u128(0xF2)];
    for copy in ["a", "b", "c"] {
        world.publish(&fact(1, 0), first, &format!("first-{copy}")).await;
        world.publish(&fact(1, 1), second, &format!("second-{copy}")).await;
    }
    world.until_acknowledged().await;
    let notes: Vec<_> = subscriber.notes().into_iter().map(|note| (note.event_id, note.attempt)).collect();
    assert_eq!(notes, [(first, 1), (second, 1)]);
    assert_eq!(world.entry(first).await["state"], json!("settled"));
    assert_eq!(world.entry(second).await["no_effect"], json!("no_need"));
    assert_eq!(world.letters().await, [] as [serde_json::Value; 0]);
    running.stop().await.unwrap();
    // Nor is it news to the next process.
    let running = world.run(service(subscriber.clone())).await;
    world.publish(&fact(1, 0), first, "first-d").await;
    world.until_acknowledged().await;
    assert_eq!(subscriber.notes().len(), 2);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_share_the_work_and_never_do_the_same_at_once() {
    let world = World::start().await;
    let subscriber = SendNote::script(|_| Act::Linger(Duration::from_millis(5)));
    let replicas = [world.run(service(subscriber.clone())).await, world.run(service(subscriber.clone())).await];
    for (n, id) in ids(60).enumerate() {
        let fact = fact(n as u128 + 1, 0);
        world.publish(&fact, id, &format!("{n}-a")).await;
        world.publish(&fact, id, &format!("{n}-b")).await;
    }
    world.until_acknowledged().await;
    let mut notes: Vec<_> = subscriber.notes().into_iter().map(|note| note.event_id).collect();
    notes.sort_unstable();
    assert_eq!(notes, ids(60).collect::<Vec<_>>(), "each fact has one effect");
    for replica in replicas {
        replica.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fact_that_two_replicas_receive_at_once_enters_the_handler_once() {
    let world = World::start().await;
    let subscriber = SendNote::script(|_| Act::Linger(Duration::from_secs(1)));
    let replicas = [world.run(service(subscriber.clone())).await, world.run(service(subscriber.clone())).await];
    // Of so many copies each replica receives some.
    for copy in 0..40 {
        world.publish(&fact(1, 0), Uuid::from_u128(0xF1), &copy.to_string()).await;
    }
    world.until_acknowledged().await;
    assert_eq!((subscriber.notes().len(), subscriber.most_at_once()), (1, 1));
    for replica in replicas {
        replica.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_process_without_a_database_is_ready_tells_its_status_and_counts() {
    let world = World::start().await;
    let running = world.run(service(SendNote::always())).await;
    world.publish(&fact(1, 0), Uuid::from_u128(0xF1), "1").await;
    world.until_acknowledged().await;
    let url = format!("http://{}", running.address());
    testkit::wait::until("readiness", crate::world::PATIENCE, || async {
        let ready = reqwest::get(format!("{url}/readyz")).await.unwrap();
        let status = ready.status();
        let report: serde_json::Value = ready.json().await.unwrap();
        let names: Vec<_> = report["checks"].as_array().unwrap().iter().map(|check| check["name"].clone()).collect();
        assert_eq!(names, ["lifecycle", "broker", "buckets", "consumer"]);
        if status.is_success() { Ok(()) } else { Err(report.to_string()) }
    })
    .await
    .unwrap();
    let metrics = reqwest::get(format!("{url}/metrics")).await.unwrap().text().await.unwrap();
    assert!(metrics.contains(r#"verdicts_total{verdict="handled",subscriber="send-note"}"#), "{metrics}");
    let client = world.nats.admin().await.unwrap();
    let answer = client.request("mesh.ctl.probe.status", "".into()).await.unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&answer.payload).unwrap();
    assert_eq!((&answer["service"], &answer["ready"]), (&json!("probe"), &json!(true)));
    running.stop().await.unwrap();
}
