use std::collections::BTreeSet;

use mesh::testing::TestBed;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use testkit::TestDatabase;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::openapi;
use crate::domain::{Bill, Charge};
use crate::ledger;
use crate::testing::{Caller, bed, euros};

const CUSTOMER: Uuid = Uuid::from_u128(0xc0);

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

async fn post(caller: &Caller, path: &str, body: Value, status: StatusCode) -> Value {
    read(caller.request("POST", path).json(&body).send().await.unwrap(), status).await
}

async fn get(caller: &Caller, path: &str, status: StatusCode) -> Value {
    read(caller.request("GET", path).send().await.unwrap(), status).await
}

async fn open(caller: &Caller) -> Value {
    post(caller, "/accounts", json!({ "customer_id": CUSTOMER, "currency": "EUR" }), StatusCode::CREATED).await
}

fn deposits() -> String {
    format!("/accounts/{CUSTOMER}/deposits")
}

#[tokio::test]
async fn an_account_is_opened_once_where_its_location_says() {
    let (_database, _bed, caller) = served().await;
    let body = json!({ "customer_id": CUSTOMER, "currency": "EUR" });
    let response = caller.request("POST", "/accounts").json(&body).send().await.unwrap();
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let account = read(response, StatusCode::CREATED).await;
    assert_eq!(account, json!({ "customer_id": CUSTOMER, "currency": "EUR", "balance": 0, "version": 1 }));
    assert_eq!(get(&caller, &location, StatusCode::OK).await, account);
    for currency in ["EUR", "USD"] {
        let again = json!({ "customer_id": CUSTOMER, "currency": currency });
        post(&caller, "/accounts", again, StatusCode::CONFLICT).await;
    }
}

#[tokio::test]
async fn deposits_add_up_and_their_key_counts_once() {
    let (_database, _bed, caller) = served().await;
    open(&caller).await;
    assert_eq!(post(&caller, &deposits(), json!({ "amount": 500 }), StatusCode::OK).await["balance"], 500);
    for _ in 0..3 {
        let request =
            caller.request("POST", &deposits()).header("idempotency-key", "d1").json(&json!({ "amount": 250 }));
        assert_eq!(read(request.send().await.unwrap(), StatusCode::OK).await["balance"], 750);
    }
    let account = get(&caller, &format!("/accounts/{CUSTOMER}"), StatusCode::OK).await;
    assert_eq!(account, json!({ "customer_id": CUSTOMER, "currency": "EUR", "balance": 750, "version": 3 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_at_the_same_moment_are_one_after_the_other() {
    let (_database, _bed, caller) = served().await;
    let body = json!({ "customer_id": CUSTOMER, "currency": "EUR" });
    let mut opening = JoinSet::new();
    for _ in 0..8 {
        opening.spawn(caller.request("POST", "/accounts").json(&body).send());
    }
    let mut statuses: Vec<_> =
        opening.join_all().await.into_iter().map(|sent| sent.unwrap().status().as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);

    let mut paying = JoinSet::new();
    for n in 0..16 {
        let request = caller.request("POST", &deposits()).header("idempotency-key", format!("d{n}"));
        paying.spawn(request.json(&json!({ "amount": 10 })).send());
    }
    assert!(paying.join_all().await.into_iter().all(|sent| sent.unwrap().status() == StatusCode::OK));
    let account = get(&caller, &format!("/accounts/{CUSTOMER}"), StatusCode::OK).await;
    assert_eq!((&account["balance"], &account["version"]), (&json!(160), &json!(17)));
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_by_its_field() {
    let (_database, _bed, caller) = served().await;
    let nobody = Uuid::from_u128(404);
    get(&caller, &format!("/accounts/{nobody}"), StatusCode::NOT_FOUND).await;
    get(&caller, &format!("/accounts/{nobody}/entries"), StatusCode::NOT_FOUND).await;
    post(&caller, &format!("/accounts/{nobody}/deposits"), json!({ "amount": 1 }), StatusCode::NOT_FOUND).await;
    get(&caller, "/accounts/me", StatusCode::BAD_REQUEST).await;
    open(&caller).await;
    let cases = [
        ("/accounts".to_owned(), json!({ "customer_id": nobody, "currency": "EURO" }), "currency"),
        ("/accounts".to_owned(), json!({ "customer_id": nobody, "currency": "ZZZ" }), "currency"),
        ("/accounts".to_owned(), json!({ "customer_id": Uuid::nil(), "currency": "EUR" }), "customer_id"),
        ("/accounts".to_owned(), json!({ "customer_id": nobody, "currency": "EUR", "balance": 5 }), "balance"),
        (deposits(), json!({ "amount": 0 }), "amount"),
        (deposits(), json!({ "amount": -5 }), "amount"),
        (deposits(), json!({ "amount": 0.5 }), "amount"),
        (deposits(), json!({}), "amount"),
    ];
    for (path, body, field) in cases {
        let problem = post(&caller, &path, body.clone(), StatusCode::UNPROCESSABLE_ENTITY).await;
        assert_eq!(problem["errors"][0]["field"], field, "{body}: {problem}");
    }
}

#[tokio::test]
async fn entries_are_paged_oldest_first_and_add_up_to_the_balance() {
    let (database, _bed, caller) = served().await;
    open(&caller).await;
    post(&caller, &deposits(), json!({ "amount": 5_000 }), StatusCode::OK).await;
    let connection = &mut database.pool().acquire().await.unwrap();
    let charge = Charge { payment_id: Uuid::from_u128(1), bill: Bill::new(CUSTOMER, euros(1_999)).unwrap() };
    let account = ledger::load(connection, CUSTOMER).await.unwrap().unwrap();
    let entry = account.charge(Uuid::from_u128(2), &charge).unwrap();
    let account = ledger::append(connection, CUSTOMER, Some(account), &entry).await.unwrap();
    let entry = charge.refund(Uuid::from_u128(2), Uuid::from_u128(3));
    ledger::append(connection, CUSTOMER, Some(account), &entry).await.unwrap();

    let (mut entries, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(&caller, &format!("/accounts/{CUSTOMER}/entries?limit=3{cursor}"), StatusCode::OK).await;
        entries.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let shown: Vec<_> =
        entries.iter().map(|entry| (entry["kind"].as_str().unwrap(), entry["amount"].as_i64().unwrap())).collect();
    assert_eq!(shown, [("opened", 0), ("deposited", 5_000), ("charged", -1_999), ("refunded", 1_999)]);
    let ids = |n| json!(Uuid::from_u128(n));
    assert_eq!(
        (&entries[3]["order_id"], &entries[3]["payment_id"], &entries[3]["refund_id"]),
        (&ids(2), &ids(1), &ids(3))
    );
    assert_eq!(entries[1]["order_id"], Value::Null);
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
        let path = path.replace("{customer_id}", &CUSTOMER.to_string());
        let refused = caller.request("PATCH", &path).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
        let allowed = refused.headers()["allow"].to_str().unwrap().split(',').filter(|verb| *verb != "HEAD");
        assert_eq!(documented, allowed.map(str::to_owned).collect(), "{path}");
    }
}

#[tokio::test]
async fn accounts_and_entries_have_the_members_that_the_document_promises() {
    let (_database, _bed, caller) = served().await;
    let account = open(&caller).await;
    let entries = get(&caller, &format!("/accounts/{CUSTOMER}/entries"), StatusCode::OK).await;
    let document = openapi();
    for (shown, schema) in [(&account, "Account"), (&entries["items"][0], "Entry"), (&entries, "EntryPage")] {
        let members: BTreeSet<_> = shown.as_object().unwrap().keys().collect();
        let promised = document["components"]["schemas"][schema]["properties"].as_object().unwrap();
        assert_eq!(members, promised.keys().collect(), "{schema}: {shown}");
    }
}
