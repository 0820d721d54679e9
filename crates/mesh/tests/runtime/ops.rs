//! What outsiders hear of a running service.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::Subscriber;
use futures_util::StreamExt;
use mesh::testing::Running;
use mesh::{Backoff, OpsEvent};
use serde_json::{Value, json};
use testkit::wait;
use uuid::Uuid;

use crate::probe::{Act, AnswerOpened, Opened, service};
use crate::world::{PATIENCE, World};

fn opened(key: u128, n: u32) -> Opened {
    Opened { id: Uuid::from_u128(key), n }
}

/// Reads until a message satisfies; the last ones are told when none does.
async fn hear(heard: &mut Subscriber, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    let found = tokio::time::timeout(PATIENCE, async {
        while let Some(message) = heard.next().await {
            last = serde_json::from_slice(&message.payload).unwrap();
            if is_it(&last) {
                return;
            }
        }
    });
    assert!(found.await.is_ok(), "{what}: {last}");
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_tells_each_second_how_it_is_and_at_once_what_it_gave_up() {
    let world = World::start().await;
    let admin = world.nats.admin().await.unwrap();
    let mut beats = admin.subscribe("mesh.ops.probe").await.unwrap();
    let mut events = admin.subscribe("mesh.ops.probe.events").await.unwrap();
    admin.flush().await.unwrap();
    let locked = Arc::new(AtomicBool::new(true));
    let is_locked = Arc::clone(&locked);
    let subscriber = AnswerOpened::script(move |received| match received.event.n {
        2 if is_locked.load(Ordering::Relaxed) => Act::Fail("locked"),
        3 => Act::Reject,
        _ => Act::Answer,
    });
    let subscriber = subscriber.policy(|policy| {
        policy.attempts_max = 1_000;
        policy.backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(1) };
    });
    let running = world.run(service().subscribe(subscriber)).await;
    running.publish(&[opened(1, 1), opened(2, 2), opened(3, 3), opened(3, 4)]).await.unwrap();

    let dead = hear(&mut events, "a dead letter", |event| event["event"] == "DeadLettered").await;
    assert_eq!(
        (&dead["kind"], &dead["service"], &dead["subscriber"]),
        (&json!("event"), &json!("probe"), &json!("answer-opened"))
    );
    assert_eq!((&dead["state"], &dead["reason"], &dead["attempts"]), (&json!("dead"), &json!("rejected"), &json!(1)));
    assert_eq!(dead["key"], Uuid::from_u128(3).to_string());
    let behind = hear(&mut events, "what queues up", |event| event["event"] == "ParkedOutOfOrder").await;
    assert_eq!(behind["behind"], dead["event_id"]);

    // All but the failing one are settled or kept; what was kept is counted every few seconds.
    let handler = |beat: &Value| beat["handlers"][0].clone();
    let beat = hear(&mut beats, "the failing delivery", |beat| {
        handler(beat)["dead"] == 1 && handler(beat)["retrying_count"] == 1 && handler(beat)["watermark"].is_u64()
    })
    .await;
    let failing = &handler(&beat)["retrying"][0];
    assert_eq!((&failing["error"], &failing["attempts_max"]), (&json!("locked"), &json!(1_000)));
    assert!(failing["attempt"].as_u64().unwrap() >= 1 && failing["next_at"].is_string(), "{failing}");
    assert_eq!(handler(&beat)["parked"], 1);
    let (watermark, place) = (handler(&beat)["watermark"].as_u64().unwrap(), failing["sequence"].as_u64().unwrap());
    assert!(watermark < place, "{watermark} is past {place}, which is not settled");
    assert!(beat["unacknowledged"].as_u64().unwrap() >= 1);
    assert_eq!(
        (&beat["database"]["ok"], &beat["nats"]["ok"], &beat["outbox"]["unsent"]),
        (&json!(true), &json!(true), &json!(0))
    );
    // Both are on this machine.
    assert!(beat["clock_offset_ms"].as_i64().unwrap().abs() < 2_000, "{beat}");
    let next = hear(&mut beats, "the next one", |_| true).await;
    assert_eq!(next["number"].as_u64().unwrap(), beat["number"].as_u64().unwrap() + 1);
    assert_eq!((&next["instance"], &next["contract"]), (&beat["instance"], &beat["contract"]));

    locked.store(false, Ordering::Relaxed);
    // Four were opened, and two are answered by then.
    let settled = |beat: &Value| handler(beat)["watermark"] == 6 && handler(beat)["retrying_count"] == 0;
    hear(&mut beats, "everything settled", settled).await;
    running.stop().await.unwrap();
}

#[tokio::test]
async fn an_event_that_cannot_be_told_is_counted_and_holds_nothing_up() {
    let world = World::start().await;
    let running = world.run(service().subscribe(AnswerOpened::always())).await;
    running.publish(&[opened(1, 1)]).await.unwrap();
    world.until_count("select count(*) from effect", 1).await;
    world.nats.kill9().await;
    let context = Arc::clone(running.mesh().context());
    wait::until("the loss of an event", PATIENCE, || async {
        let event = OpsEvent::DuplicateIgnored { subscriber: "answer-opened".to_owned(), count: 1 };
        context.ops.emit(context.clock.now(), event);
        if context.ops.events_dropped() > 0 { Ok(()) } else { Err("all were told") }
    })
    .await
    .unwrap();
    // Requests go on: their facts wait in the outbox.
    running.publish(&[opened(2, 1)]).await.unwrap();
    running.stop().await.unwrap();
}

/// Two replicas share the durable: what one has in hand keeps the watermark of both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watermark_holds_for_all_replicas() {
    let world = World::start().await;
    let admin = world.nats.admin().await.unwrap();
    let mut beats = admin.subscribe("mesh.ops.probe").await.unwrap();
    admin.flush().await.unwrap();
    let failing = || {
        let subscriber =
            AnswerOpened::script(|received| if received.event.n == 2 { Act::Fail("locked") } else { Act::Answer });
        subscriber.policy(|policy| policy.attempts_max = 1_000)
    };
    let one = world.run(service().subscribe(failing())).await;
    let other: Running = world.run(service().subscribe(failing())).await;
    running_publishes(&one).await;
    world.until_count("select count(*) from effect", 20).await;
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 2 {
        // One of the two has the failing delivery, and says so; both say the same watermark, which is below it.
        let beat =
            hear(&mut beats, "a watermark", |beat| beat["handlers"][0]["watermark"].is_u64() && beat["pending"] == 0)
                .await;
        assert!(beat["handlers"][0]["watermark"].as_u64().unwrap() < 1, "the first message is not settled: {beat}");
        seen.insert(beat["instance"].as_str().unwrap().to_owned());
    }
    one.stop().await.unwrap();
    other.stop().await.unwrap();
}

/// The first one fails, twenty behind it do not.
async fn running_publishes(running: &Running) {
    running.publish(&[opened(1, 2)]).await.unwrap();
    for key in 2..22 {
        running.publish(&[opened(key, 1)]).await.unwrap();
    }
}
