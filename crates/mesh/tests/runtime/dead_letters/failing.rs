//! Letters that fail again stay, and a redrive of many that all fail the same way ends by itself.

use serde_json::json;

use super::asking::Operator;
use super::{Fault, opened, run_until_kept};
use crate::probe::{Act, AnswerOpened, Opened, service};
use crate::world::World;

#[tokio::test]
async fn a_letter_that_fails_again_is_kept_with_every_attempt_and_holds_its_key() {
    let world = World::start().await;
    let fault = Fault::new();
    let running = run_until_kept(&world, &fault.rejecting(), &[opened(1, 1), opened(1, 2)], 2).await;
    let operator = Operator::of(&world).await;
    for operation in 1..=2 {
        let ended = operator.redrive(json!({ "reason": "rejected" }), operation).await;
        assert_eq!(ended["state"], "finished");
        assert_eq!(ended["outcomes"], json!({ "failed": 1, "waits": 1 }), "{ended}");
    }
    let letters = operator.letters(json!({})).await;
    assert_eq!((&letters[1]["state"], &letters[1]["attempts"]), (&json!("dead"), &json!(3)));
    assert_eq!(letters[0]["reason"], "behind");
    let shown = operator.ask("dead.show", json!({ "id": letters[1]["id"] })).await;
    let attempts: Vec<_> = shown["history"].as_array().unwrap().iter().map(|entry| &entry["attempt"]).collect();
    assert_eq!(attempts, [2, 3], "{shown}");
    assert_eq!(shown["history"][1]["build"], "test");
    running.publish(&[opened(1, 3)]).await.unwrap();
    world.until_count("select count(*) from mesh.dead_letter where reason = 'behind'", 2).await;
    running.stop().await.unwrap();
}

#[tokio::test]
async fn five_failures_in_a_row_that_look_the_same_end_an_operation() {
    let world = World::start().await;
    let subscriber = AnswerOpened::script(|_| Act::Reject);
    let facts: Vec<Opened> = (1..=8).map(|key| opened(key, 1)).collect();
    let running = run_until_kept(&world, &subscriber, &facts, 8).await;
    let operator = Operator::of(&world).await;
    let ended = operator.redrive(json!({}), 1).await;
    assert_eq!((&ended["state"], &ended["outcomes"]), (&json!("stopped"), &json!({ "failed": 5 })), "{ended}");
    let reason = ended["stop_reason"].as_str().unwrap();
    assert_eq!(reason, "5 failures in a row: answer-opened: not now, not ever");
    assert_eq!(world.count("select count(*) from mesh.dead_letter where attempts = 1").await, 3, "never tried");
    running.stop().await.unwrap();
}

#[tokio::test]
async fn failures_that_look_different_do_not_end_an_operation() {
    let world = World::start().await;
    let subscriber = AnswerOpened::script(|received| match received.event.n % 2 {
        0 => Act::Reject,
        _ => Act::Fail("for another reason"),
    })
    .policy(|policy| policy.attempts_max = 1);
    let facts: Vec<Opened> = (1..=8).map(|n| opened(u128::from(n), n)).collect();
    let running = run_until_kept(&world, &subscriber, &facts, 8).await;
    let ended = Operator::of(&world).await.redrive(json!({}), 1).await;
    assert_eq!((&ended["state"], &ended["outcomes"]), (&json!("finished"), &json!({ "failed": 8 })), "{ended}");
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_letter_of_a_subscriber_that_was_renamed_is_refused_by_name() {
    let world = World::start().await;
    let running = run_until_kept(&world, &Fault::new().rejecting(), &[opened(1, 1)], 1).await;
    running.stop().await.unwrap();
    let running = world.run(service()).await;
    let preview = Operator::of(&world).await.preview("redrive", json!({})).await;
    assert_eq!((&preview["eligible"], &preview["token"]), (&json!(0), &json!(null)));
    assert_eq!(preview["unknown_subscribers"], json!({ "answer-opened": 1 }));
    assert_eq!(world.count("select count(*) from mesh.dead_letter").await, 1);
    running.stop().await.unwrap();
}
