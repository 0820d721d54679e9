//! What is done is done to the set that was shown, once.

use serde_json::json;
use uuid::Uuid;

use super::asking::Operator;
use super::{Fault, opened, run_until_kept};
use crate::world::World;

#[tokio::test]
async fn a_token_is_good_for_what_was_shown_and_for_nothing_else() {
    let world = World::start().await;
    let fault = Fault::new();
    let running = run_until_kept(&world, &fault.rejecting(), &[opened(1, 1), opened(2, 1), opened(3, 1)], 3).await;
    let operator = Operator::of(&world).await;
    let shown = operator.preview("redrive", json!({})).await;
    let stale = operator.preview("redrive", json!({})).await;
    // What comes later agrees with the filter and was not shown.
    running.publish(&[opened(4, 1), opened(5, 1)]).await.unwrap();
    world.until_count("select count(*) from mesh.dead_letter", 5).await;
    fault.mend();
    operator.ask("dead.redrive", Operator::order(&shown, 1)).await;
    assert_eq!(operator.until_ended(1).await["outcomes"], json!({ "redriven": 3 }));
    assert_eq!(world.count("select count(*) from mesh.dead_letter").await, 2);

    let (code, why) = operator.refusal("dead.redrive", Operator::order(&stale, 2)).await;
    assert_eq!((code.as_str(), why.contains("the set has changed")), ("409", true), "{why}");
    let (code, why) = operator.refusal("dead.redrive", Operator::order(&shown, 3)).await;
    assert_eq!((code.as_str(), why.contains("token")), ("409", true), "used up: {why}");
    let discard = operator.preview("discard", json!({})).await;
    let (code, _) = operator.refusal("dead.redrive", Operator::order(&discard, 4)).await;
    assert_eq!(code, "409", "shown for another purpose");
    sqlx::query("update mesh.operation_preview set expires_at = now() - interval '1 s'")
        .execute(world.pool())
        .await
        .unwrap();
    let (code, why) = operator.refusal("dead.discard", Operator::order(&discard, 5)).await;
    assert_eq!((code.as_str(), why.contains("expired")), ("409", true), "{why}");
    let (code, _) = operator.refusal("operation.show", json!({ "operation_id": Uuid::from_u128(2) })).await;
    assert_eq!(code, "404", "nothing is left of what was refused");
    assert_eq!(world.count("select count(*) from mesh.dead_letter where state = 'dead'").await, 2);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn an_operation_that_is_asked_for_again_is_done_once() {
    let world = World::start().await;
    let fault = Fault::new();
    let running = run_until_kept(&world, &fault.rejecting(), &[opened(1, 1), opened(2, 1)], 2).await;
    let operator = Operator::of(&world).await;
    let first = operator.preview("redrive", json!({ "key": Uuid::from_u128(1) })).await;
    let second = operator.preview("redrive", json!({ "key": Uuid::from_u128(2) })).await;
    fault.mend();
    let order = Operator::order(&first, 1);
    operator.ask("dead.redrive", order.clone()).await;
    operator.until_ended(1).await;
    let again = operator.ask("dead.redrive", order).await;
    assert_eq!((&again["state"], &again["outcomes"]), (&json!("finished"), &json!({ "redriven": 1 })), "{again}");
    let (code, why) = operator.refusal("dead.redrive", Operator::order(&second, 1)).await;
    assert_eq!((code.as_str(), why.contains("another one")), ("409", true), "{why}");
    assert_eq!(world.count("select count(*) from effect").await, 1);
    let operations = operator.ask("operation.list", json!({})).await;
    assert_eq!(operations["operations"].as_array().unwrap().len(), 1);
    assert_eq!(operations["operations"][0]["requested_by"], "kim");
    running.stop().await.unwrap();
}

/// Facts beyond the inbox's memory are refused: nothing would tell a repeat from the first.
#[tokio::test]
async fn what_the_inbox_has_forgotten_is_not_redriven() {
    let world = World::start().await;
    let running = run_until_kept(&world, &Fault::new().rejecting(), &[opened(1, 1), opened(1, 2)], 2).await;
    sqlx::query("delete from mesh.inbox where event_id = (select event_id from mesh.dead_letter order by id limit 1)")
        .execute(world.pool())
        .await
        .unwrap();
    let preview = Operator::of(&world).await.preview("redrive", json!({})).await;
    assert_eq!((&preview["eligible"], &preview["too_old"], &preview["blocked"]), (&json!(0), &json!(1), &json!(1)));
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_list_is_given_out_in_pages_and_a_request_that_cannot_be_read_says_why() {
    let world = World::start().await;
    let facts: Vec<_> = (1..=5).map(|key| opened(key, 1)).collect();
    let running = run_until_kept(&world, &Fault::new().rejecting(), &facts, 5).await;
    let operator = Operator::of(&world).await;
    let (mut cursor, mut seen) = (json!(null), Vec::new());
    for expected in [2, 2, 1] {
        let page = operator.ask("dead.list", json!({ "limit": 2, "cursor": cursor })).await;
        let letters = page["letters"].as_array().unwrap();
        assert_eq!(letters.len(), expected, "{page}");
        seen.extend(letters.iter().map(|letter| letter["id"].as_i64().unwrap()));
        cursor = page["next_cursor"].clone();
    }
    assert_eq!(cursor, json!(null));
    assert!(seen.is_sorted_by(|one, next| one > next), "{seen:?}");
    let (code, why) = operator.refusal("dead.list", json!({ "filter": { "colour": "red" } })).await;
    assert_eq!((code.as_str(), why.contains("colour")), ("400", true), "{why}");
    assert_eq!(operator.refusal("dead.show", json!({ "id": 0 })).await.0, "404");
    running.stop().await.unwrap();
}
