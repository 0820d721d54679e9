use std::collections::BTreeSet;

use mesh::testing::TestBed;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use testkit::TestDatabase;
use tokio::task::JoinSet;

use super::openapi;
use crate::store::stock;
use crate::testing::{Caller, bed, demand};

async fn served() -> (TestDatabase, TestBed, Caller) {
    let (database, mut bed) = bed().await;
    let caller = Caller::new(bed.router().unwrap()).await;
    (database, bed, caller)
}

async fn read(response: Response, status: StatusCode) -> Value {
    let (got, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(got, status, "{text}");
    serde_json::from_str(&text).unwrap()
}

async fn put(caller: &Caller, sku: &str, on_hand: i64, status: StatusCode) -> Value {
    let request = caller.request("PUT", &format!("/stock/{sku}")).json(&json!({ "on_hand": on_hand }));
    read(request.send().await.unwrap(), status).await
}

async fn restock(caller: &Caller, sku: &str, quantity: i64, status: StatusCode) -> Value {
    let request = caller.request("POST", &format!("/stock/{sku}/restocks")).json(&json!({ "quantity": quantity }));
    read(request.send().await.unwrap(), status).await
}

async fn get(caller: &Caller, path: &str, status: StatusCode) -> Value {
    read(caller.request("GET", path).send().await.unwrap(), status).await
}

fn cup(on_hand: i64, reserved: i64, version: i64) -> Value {
    let available = on_hand - reserved;
    json!({ "sku": "cup", "on_hand": on_hand, "reserved": reserved, "available": available, "version": version })
}

#[tokio::test]
async fn stock_is_counted_and_restocked() {
    let (_database, _bed, caller) = served().await;
    let response = caller.request("PUT", "/stock/cup").json(&json!({ "on_hand": 5 })).send().await.unwrap();
    assert_eq!(response.headers()["location"], "/stock/cup");
    assert_eq!(read(response, StatusCode::CREATED).await, cup(5, 0, 1));
    assert_eq!(put(&caller, "cup", 4, StatusCode::OK).await, cup(4, 0, 2));
    assert_eq!(restock(&caller, "cup", 6, StatusCode::OK).await, cup(10, 0, 3));
    assert_eq!(get(&caller, "/stock/cup", StatusCode::OK).await, cup(10, 0, 3));
}

#[tokio::test]
async fn a_count_below_what_is_promised_is_refused() {
    let (database, _bed, caller) = served().await;
    put(&caller, "cup", 5, StatusCode::CREATED).await;
    let connection = &mut database.pool().acquire().await.unwrap();
    stock::reserve(connection, &demand(&[("cup", 3)])).await.unwrap();
    put(&caller, "cup", 2, StatusCode::CONFLICT).await;
    assert_eq!(get(&caller, "/stock/cup", StatusCode::OK).await, cup(5, 3, 2));
    assert_eq!(put(&caller, "cup", 3, StatusCode::OK).await, cup(3, 3, 3));
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_by_its_field() {
    let (_database, _bed, caller) = served().await;
    get(&caller, "/stock/fan", StatusCode::NOT_FOUND).await;
    restock(&caller, "fan", 1, StatusCode::NOT_FOUND).await;
    for sku in ["two%20words", "-cup", &"x".repeat(65)] {
        get(&caller, &format!("/stock/{sku}"), StatusCode::BAD_REQUEST).await;
        put(&caller, sku, 1, StatusCode::BAD_REQUEST).await;
    }
    put(&caller, "cup", 1_000_000_000, StatusCode::CREATED).await;
    for on_hand in [-1, 1_000_000_001] {
        let problem = put(&caller, "cup", on_hand, StatusCode::UNPROCESSABLE_ENTITY).await;
        assert_eq!(problem["errors"][0]["field"], "on_hand");
    }
    for quantity in [0, -1, 1] {
        let problem = restock(&caller, "cup", quantity, StatusCode::UNPROCESSABLE_ENTITY).await;
        assert_eq!(problem["errors"][0]["field"], "quantity", "{quantity}: above the bound, or nothing");
    }
    let request = caller.request("PUT", "/stock/cup").json(&json!({ "on_hand": 1, "reserved": 1 }));
    let problem = read(request.send().await.unwrap(), StatusCode::UNPROCESSABLE_ENTITY).await;
    assert_eq!(problem["errors"][0]["field"], "reserved");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_at_the_same_moment_are_one_after_the_other() {
    let (_database, _bed, caller) = served().await;
    let mut counting = JoinSet::new();
    for _ in 0..8 {
        counting.spawn(caller.request("PUT", "/stock/cup").json(&json!({ "on_hand": 5 })).send());
    }
    let mut statuses: Vec<_> =
        counting.join_all().await.into_iter().map(|sent| sent.unwrap().status().as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 201]);

    let mut restocking = JoinSet::new();
    for n in 0..16 {
        // Each of eight deliveries is sent twice.
        let request = caller.request("POST", "/stock/cup/restocks").header("idempotency-key", format!("r{}", n / 2));
        restocking.spawn(request.json(&json!({ "quantity": 1 })).send());
    }
    for sent in restocking.join_all().await {
        let status = sent.unwrap().status();
        assert!(matches!(status, StatusCode::OK | StatusCode::CONFLICT), "done, replayed, or still running: {status}");
    }
    assert_eq!(get(&caller, "/stock/cup", StatusCode::OK).await, cup(13, 0, 16));
}

#[tokio::test]
async fn a_list_is_paged_in_sku_order() {
    let (_database, _bed, caller) = served().await;
    for sku in ["pot", "cup", "Fan"] {
        put(&caller, sku, 1, StatusCode::CREATED).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(&caller, &format!("/stock?limit=2{cursor}"), StatusCode::OK).await;
        seen.extend(page["items"].as_array().unwrap().iter().map(|stock| stock["sku"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ["Fan", "cup", "pot"]);
    get(&caller, "/stock?cursor=abc", StatusCode::UNPROCESSABLE_ENTITY).await;
    get(&caller, "/stock?page=2", StatusCode::UNPROCESSABLE_ENTITY).await;
}

#[tokio::test]
async fn the_openapi_document_lists_the_routes_and_nothing_else() {
    let (_database, _bed, caller) = served().await;
    let document = openapi();
    let paths = document["paths"].as_object().expect("openapi.json is JSON with paths");
    let source = include_str!("../http.rs").split(".route(\"").skip(1);
    let routes: BTreeSet<&str> = source.filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(paths.keys().map(String::as_str).collect::<BTreeSet<_>>(), routes);
    for (path, operations) in paths {
        let documented: BTreeSet<_> = operations.as_object().unwrap().keys().map(|verb| verb.to_uppercase()).collect();
        // A route answers a method that it does not take with those that it takes.
        let refused = caller.request("PATCH", &path.replace("{sku}", "cup")).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
        let allowed = refused.headers()["allow"].to_str().unwrap().split(',').filter(|verb| *verb != "HEAD");
        assert_eq!(documented, allowed.map(str::to_owned).collect(), "{path}");
    }
}

#[tokio::test]
async fn stock_has_the_members_that_the_document_promises() {
    let (_database, _bed, caller) = served().await;
    let stock = put(&caller, "cup", 1, StatusCode::CREATED).await;
    let page = get(&caller, "/stock", StatusCode::OK).await;
    let document = openapi();
    for (shown, schema) in [(&stock, "Stock"), (&page, "StockPage")] {
        let members: BTreeSet<_> = shown.as_object().unwrap().keys().collect();
        let promised = document["components"]["schemas"][schema]["properties"].as_object().unwrap();
        assert_eq!(members, promised.keys().collect(), "{schema}: {shown}");
    }
}
