use std::collections::{BTreeMap, BTreeSet};

use events::{OrderCancelled, OrderCreated};
use mesh::testing::TestBed;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use testkit::TestDatabase;
use uuid::Uuid;

use super::openapi;
use crate::testing::{Caller, bed};

const CUSTOMER: &str = "00000000-0000-0000-0000-0000000000c0";

async fn served() -> (TestDatabase, TestBed, Caller) {
    let (database, mut bed) = bed().await;
    let caller = Caller::new(bed.router().unwrap()).await;
    (database, bed, caller)
}

fn draft() -> Value {
    json!({
        "customer_id": CUSTOMER,
        "currency": "EUR",
        "lines": [
            { "sku": "pot", "quantity": 1, "unit_price": 1999 },
            { "sku": "cup", "quantity": 3, "unit_price": 250 },
        ],
    })
}

async fn read(response: Response, status: StatusCode) -> Value {
    let (got, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(got, status, "{text}");
    serde_json::from_str(&text).unwrap()
}

async fn place(caller: &Caller) -> Value {
    read(caller.request("POST", "/orders").json(&draft()).send().await.unwrap(), StatusCode::CREATED).await
}

fn id(order: &Value) -> &str {
    order["order_id"].as_str().unwrap()
}

#[tokio::test]
async fn a_placed_order_is_pending_where_its_location_says_and_told_to_others() {
    let (_database, bed, caller) = served().await;
    let response = caller.request("POST", "/orders").json(&draft()).send().await.unwrap();
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let order = read(response, StatusCode::CREATED).await;
    assert_eq!(location, format!("/orders/{}", id(&order)));

    let mut rest = order.clone();
    let members = rest.as_object_mut().unwrap();
    for member in ["order_id", "created_at", "updated_at"] {
        assert!(members.remove(member).unwrap().is_string(), "{member}");
    }
    let mut expected = draft();
    for (member, value) in [("total", json!(2749)), ("status", json!("pending")), ("version", json!(1))] {
        expected[member] = value;
    }
    expected["cancel_reason"] = Value::Null;
    assert_eq!(rest, expected);
    assert_eq!(read(caller.request("GET", &location).send().await.unwrap(), StatusCode::OK).await, order);

    let facts = bed.published::<OrderCreated>().await.unwrap();
    let [(metadata, fact)] = &facts[..] else { panic!("not one fact: {facts:?}") };
    assert_eq!((fact.order_id.to_string().as_str(), fact.total.minor, fact.lines.len()), (id(&order), 2749, 2));
    assert_eq!((metadata.correlation_id, metadata.causation_id, metadata.hops), (fact.order_id, None, 0));
}

#[tokio::test]
async fn a_repeated_key_places_one_order() {
    let (_database, bed, caller) = served().await;
    let send = |body: Value| caller.request("POST", "/orders").header("idempotency-key", "k1").json(&body).send();
    let first = send(draft()).await.unwrap();
    assert!(!first.headers().contains_key("idempotency-replayed"));
    let second = send(draft()).await.unwrap();
    assert_eq!(second.headers()["idempotency-replayed"], "true");
    let (first, second) = (read(first, StatusCode::CREATED).await, read(second, StatusCode::CREATED).await);
    assert_eq!(first, second);
    let mut other = draft();
    other["lines"][0]["quantity"] = json!(2);
    read(send(other).await.unwrap(), StatusCode::UNPROCESSABLE_ENTITY).await;
    assert_eq!(bed.published::<OrderCreated>().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_wrong_draft_is_refused_field_by_field_and_leaves_nothing() {
    let (database, bed, caller) = served().await;
    let mut wrong = draft();
    wrong["currency"] = json!("eur");
    wrong["lines"][1]["quantity"] = json!(0);
    let problem = caller.request("POST", "/orders").json(&wrong).send().await.unwrap();
    assert_eq!(problem.headers()["content-type"], "application/problem+json");
    let problem = read(problem, StatusCode::UNPROCESSABLE_ENTITY).await;
    let fields: Vec<_> = problem["errors"].as_array().unwrap().iter().map(|error| &error["field"]).collect();
    assert_eq!(fields, ["currency", "lines[1].quantity"]);

    let cases = [
        (json!({ "customer_id": CUSTOMER, "currency": "EUR", "lines": [], "discount": 1 }), "discount"),
        (json!({ "customer_id": "me", "currency": "EUR", "lines": [] }), "customer_id"),
        (json!({ "customer_id": CUSTOMER, "currency": "EUR" }), "lines"),
    ];
    for (body, field) in cases {
        let response = caller.request("POST", "/orders").json(&body).send().await.unwrap();
        let problem = read(response, StatusCode::UNPROCESSABLE_ENTITY).await;
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
    }
    let rows: i64 = sqlx::query_scalar("select count(*) from orders").fetch_one(database.pool()).await.unwrap();
    assert_eq!((rows, bed.published::<OrderCreated>().await.unwrap().len()), (0, 0));
}

#[tokio::test]
async fn a_pending_order_is_cancelled_once() {
    let (_database, bed, caller) = served().await;
    let order = place(&caller).await;
    let path = format!("/orders/{}/cancel", id(&order));
    let cancelled = read(caller.request("POST", &path).send().await.unwrap(), StatusCode::OK).await;
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!((&cancelled["cancel_reason"], &cancelled["version"]), (&json!("customer"), &json!(2)));
    let again = read(caller.request("POST", &path).send().await.unwrap(), StatusCode::OK).await;
    assert_eq!(again, cancelled);

    let facts = bed.published::<OrderCancelled>().await.unwrap();
    let [(metadata, fact)] = &facts[..] else { panic!("not one fact: {facts:?}") };
    // A request of its own: no cause, but in the flow of its order.
    assert_eq!((metadata.correlation_id, metadata.causation_id, metadata.hops), (fact.order_id, None, 0));
}

#[tokio::test]
async fn a_confirmed_order_cannot_be_cancelled() {
    let (database, bed, caller) = served().await;
    let order = place(&caller).await;
    sqlx::query("update orders set status = 'confirmed'").execute(database.pool()).await.unwrap();
    let path = format!("/orders/{}/cancel", id(&order));
    read(caller.request("POST", &path).send().await.unwrap(), StatusCode::CONFLICT).await;
    assert!(bed.published::<OrderCancelled>().await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_not_there_is_404_and_what_cannot_be_read_names_itself() {
    let (_database, _bed, caller) = served().await;
    let nobody = Uuid::from_u128(404);
    for (method, path, status) in [
        ("GET", format!("/orders/{nobody}"), StatusCode::NOT_FOUND),
        ("POST", format!("/orders/{nobody}/cancel"), StatusCode::NOT_FOUND),
        ("GET", "/orders/17".to_owned(), StatusCode::BAD_REQUEST),
        ("GET", "/orders?status=shipped".to_owned(), StatusCode::UNPROCESSABLE_ENTITY),
        ("GET", "/orders?customer=me".to_owned(), StatusCode::UNPROCESSABLE_ENTITY),
        ("GET", "/orders?cursor=abc".to_owned(), StatusCode::UNPROCESSABLE_ENTITY),
        ("GET", "/orders?limit=0".to_owned(), StatusCode::UNPROCESSABLE_ENTITY),
    ] {
        let response = caller.request(method, &path).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/problem+json", "{path}");
        read(response, status).await;
    }
}

#[tokio::test]
async fn a_list_is_paged_newest_first() {
    let (_database, _bed, caller) = served().await;
    let mut placed = Vec::new();
    for _ in 0..3 {
        placed.insert(0, id(&place(&caller).await).to_owned());
    }
    // Ids of one millisecond sort by chance, so the order of the list is the order of the ids.
    placed.sort_unstable_by(|a, b| b.cmp(a));
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/orders?customer_id={CUSTOMER}&status=pending&limit=2{cursor}");
        let page = read(caller.request("GET", &path).send().await.unwrap(), StatusCode::OK).await;
        seen.extend(page["items"].as_array().unwrap().iter().map(|order| id(order).to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, placed);
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
        let path = path.replace("{order_id}", CUSTOMER);
        let refused = caller.request("PATCH", &path).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
        let allowed = refused.headers()["allow"].to_str().unwrap().split(',').filter(|verb| *verb != "HEAD");
        assert_eq!(documented, allowed.map(str::to_owned).collect(), "{path}");
    }
}

#[tokio::test]
async fn an_order_has_the_members_that_the_document_promises() {
    let (_database, _bed, caller) = served().await;
    let order = place(&caller).await;
    let document = openapi();
    let schemas = &document["components"]["schemas"];
    for (shown, schema) in [(&order, "Order"), (&order["lines"][0], "Line")] {
        let members: BTreeMap<_, _> = shown.as_object().unwrap().iter().collect();
        let promised: BTreeMap<_, _> = schemas[schema]["properties"].as_object().unwrap().iter().collect();
        assert!(members.keys().eq(promised.keys()), "{schema}: {shown}");
    }
}
