//! One key, one effect, one reply.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::shop::{Shop, problem};

const REPLAYED: &str = "idempotency-replayed";

async fn body(response: Response) -> Value {
    response.json().await.unwrap()
}

#[tokio::test]
async fn the_same_request_gets_the_same_reply_and_is_done_once() {
    let shop = Shop::open().await;
    let first = shop.add("/tallies/a", "k-1").send().await.unwrap();
    assert_eq!((first.status(), first.headers().get(REPLAYED)), (StatusCode::CREATED, None));
    let location = first.headers()["location"].clone();
    let first = body(first).await;
    let second = shop.add("/tallies/a", "k-1").send().await.unwrap();
    assert_eq!(second.status(), StatusCode::CREATED);
    assert_eq!(second.headers()[REPLAYED], "true");
    assert_eq!(second.headers()["location"], location);
    assert_eq!(second.headers()["content-type"], "application/json");
    assert_eq!(body(second).await, first);
    assert_eq!((shop.value("a").await, shop.published().await, shop.stored_replies().await), (1, 1, 1));
}

#[tokio::test]
async fn spelling_makes_no_other_request() {
    let shop = Shop::open().await;
    shop.add("/tallies/a", "k-1").send().await.unwrap();
    let respelt = shop.post("/tallies/%61").header("Idempotency-Key", "\"k-1\"");
    let respelt = respelt.header("content-type", "application/json; charset=utf-8").body("{\n  \"amount\" : 1 }");
    let response = respelt.send().await.unwrap();
    assert_eq!((response.status(), response.headers()[REPLAYED].as_bytes()), (StatusCode::CREATED, &b"true"[..]));
    assert_eq!(shop.value("a").await, 1);
}

#[tokio::test]
async fn a_key_cannot_be_used_for_two_requests() {
    let shop = Shop::open().await;
    shop.add("/tallies/a", "k-1").send().await.unwrap();
    for (path, amount) in [("/tallies/a", 2), ("/tallies/b", 1)] {
        let other = shop.post(path).header("idempotency-key", "k-1").json(&json!({ "amount": amount }));
        let (status, problem) = problem(other).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(problem["type"], "urn:mesh:problem:idempotency-key-reused");
        assert_eq!(problem["errors"][0]["field"], "Idempotency-Key");
    }
    assert_eq!((shop.value("a").await, shop.value("b").await), (1, 0));
    // Keys belong to an operation: another one may use the same.
    shop.gate.open.add_permits(1);
    assert_eq!(shop.add("/slow/a", "k-1").send().await.unwrap().status(), StatusCode::CREATED);
}

#[tokio::test]
async fn while_the_first_request_runs_the_second_is_told_to_wait() {
    let shop = Shop::open().await;
    let first = tokio::spawn(shop.add("/slow/a", "k-1").send());
    shop.gate.entered.notified().await;
    let second = shop.add("/slow/a", "k-1").send().await.unwrap();
    assert_eq!((second.status(), &second.headers()["retry-after"]), (StatusCode::CONFLICT, &"1".parse().unwrap()));
    assert_eq!(body(second).await["type"], "urn:mesh:problem:request-in-progress");
    shop.gate.open.add_permits(2);
    let first = body(first.await.unwrap().unwrap()).await;
    let third = shop.add("/slow/a", "k-1").send().await.unwrap();
    assert_eq!(third.headers()[REPLAYED], "true");
    assert_eq!(body(third).await, first);
    assert_eq!(shop.value("a").await, 1);
}

#[tokio::test]
async fn many_at_once_are_one_effect() {
    let shop = Shop::open().await;
    for round in 0..10 {
        let key = format!("k-{round}");
        let responses = join_all((0..12).map(|_| shop.add("/tallies/a", &key).send())).await;
        let mut outcomes = BTreeMap::new();
        for response in responses {
            let response = response.unwrap();
            let replayed = response.headers().contains_key(REPLAYED);
            *outcomes.entry((response.status().as_u16(), replayed)).or_insert(0) += 1;
        }
        assert_eq!(outcomes.remove(&(201, false)), Some(1), "one did it: {outcomes:?}");
        outcomes.retain(|outcome, _| *outcome != (201, true) && *outcome != (409, false));
        assert_eq!(outcomes, BTreeMap::new());
    }
    assert_eq!((shop.value("a").await, shop.published().await), (10, 10));
}

#[tokio::test]
async fn without_a_key_every_request_counts() {
    let shop = Shop::open().await;
    for _ in 0..2 {
        let response = shop.post("/tallies/a").json(&json!({ "amount": 1 })).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
    }
    assert_eq!((shop.value("a").await, shop.published().await, shop.stored_replies().await), (2, 2, 0));
}

#[tokio::test]
async fn a_refused_request_leaves_nothing_and_may_be_tried_again() {
    let shop = Shop::open().await;
    for _ in 0..2 {
        let request = shop.post("/refuse/politely").header("idempotency-key", "k-1");
        let (status, problem) = problem(request).await;
        assert_eq!((status, &problem["detail"]), (StatusCode::CONFLICT, &json!("the tally is closed")));
    }
    assert_eq!((shop.value("refused").await, shop.published().await, shop.stored_replies().await), (0, 0, 0));
}

#[tokio::test]
async fn an_invalid_body_claims_no_key() {
    let shop = Shop::open().await;
    let wrong = shop.post("/tallies/a").header("idempotency-key", "k-1").json(&json!({ "amount": 1.5 }));
    let (status, problem) = problem(wrong).await;
    assert_eq!((status, &problem["errors"][0]["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("amount")));
    assert_eq!(shop.add("/tallies/a", "k-1").send().await.unwrap().status(), StatusCode::CREATED);
}
