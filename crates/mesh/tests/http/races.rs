//! Lost races, lost connections, lost clients.

use std::sync::atomic::Ordering;

use reqwest::StatusCode;
use serde_json::json;
use testkit::wait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::shop::{PATIENCE, Shop, problem};

#[tokio::test]
async fn a_client_that_leaves_does_not_undo_what_it_asked_for() {
    let shop = Shop::open().await;
    let mut connection = TcpStream::connect(shop.address()).await.unwrap();
    let request = "POST /slow/a HTTP/1.1\r\nhost: shop\r\nidempotency-key: k-1\r\ncontent-type: application/json\r\n\
                   content-length: 12\r\n\r\n{\"amount\":1}";
    connection.write_all(request.as_bytes()).await.unwrap();
    shop.gate.entered.notified().await;
    connection.shutdown().await.unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"", "the server has dropped the connection and the handler with it");
    let status = shop.add("/slow/a", "k-1").send().await.unwrap().status();
    assert_eq!(status, StatusCode::CONFLICT, "the transaction of the first request still holds the key");
    shop.gate.open.add_permits(1);
    shop.wait_for_value("a", 1).await;
    assert_eq!(shop.add("/slow/a", "k-1").send().await.unwrap().headers()["idempotency-replayed"], "true");
}

#[tokio::test]
async fn a_lost_race_is_run_again_from_the_start() {
    let shop = Shop::open().await;
    for code in ["40001", "40P01", "23505"] {
        shop.runs.store(0, Ordering::Relaxed);
        let twice = shop.post(&format!("/stumble/{code}")).json(&json!({ "amount": 2 }));
        assert_eq!(twice.send().await.unwrap().status(), StatusCode::CREATED, "{code}");
        assert_eq!(shop.runs.load(Ordering::Relaxed), 3, "{code}");
    }
    assert_eq!((shop.value("stumbled").await, shop.published().await), (3, 3), "one effect per request");
}

#[tokio::test]
async fn a_race_that_is_always_lost_is_the_clients_to_repeat() {
    let shop = Shop::open().await;
    let response = shop.post("/stumble/40001").json(&json!({ "amount": 9 })).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(shop.runs.load(Ordering::Relaxed), 3);
    let (status, _) = problem(shop.post("/stumble/23505").json(&json!({ "amount": 99 }))).await;
    assert_eq!(status, StatusCode::CONFLICT, "a unique key that stays taken is no race");
    assert_eq!(shop.value("stumbled").await, 0);
}

#[tokio::test]
async fn a_commit_without_an_answer_is_settled_by_the_key() {
    let shop = Shop::open().await;
    let response = shop.add("/tallies/doomed", "k-1").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    assert_eq!((shop.value("doomed").await, shop.published().await), (1, 1));
}

#[tokio::test]
async fn a_commit_without_an_answer_and_without_a_key_is_told_as_unknown() {
    let shop = Shop::open().await;
    let (status, problem) = problem(shop.post("/tallies/doomed").json(&json!({ "amount": 1 }))).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(problem["detail"].as_str().unwrap().contains("may have been done"), "{problem}");
}

#[tokio::test]
async fn without_a_database_the_client_is_asked_to_come_back() {
    let shop = Shop::open().await;
    shop.bed.pool().close().await;
    for request in [shop.add("/tallies/a", "k-1"), shop.get("/tallies/a")] {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()["retry-after"], "1");
    }
}

#[tokio::test]
async fn a_panic_undoes_the_request_and_harms_no_other() {
    let shop = Shop::open().await;
    for _ in 0..20 {
        let (status, problem) = problem(shop.post("/refuse/panic").header("idempotency-key", "k-1")).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!problem.to_string().contains("as asked"), "{problem}");
    }
    assert_eq!((shop.value("refused").await, shop.published().await, shop.stored_replies().await), (0, 0, 0));
    let idle = wait::until("no transaction is left open", PATIENCE, || async {
        let open: i64 = sqlx::query_scalar(
            "select count(*) from pg_stat_activity
             where datname = current_database() and state like 'idle in transaction%'",
        )
        .fetch_one(shop.bed.pool())
        .await
        .unwrap();
        if open == 0 { Ok(()) } else { Err(open) }
    });
    idle.await.unwrap();
}
