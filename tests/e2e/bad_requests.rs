//! Bodies that no client of good will sends: each is refused with a reason that names what is wrong, and leaves nothing.

use acceptance::shop::{Method, Reply, Request, Service, Shop};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::idempotency::prove_life;
use crate::in_shared_shop;

const CUSTOMER: &str = "c0000000-0000-7000-8000-000000000001";

/// What is sent, what may be answered, and what the answer must name.
struct Case {
    about: &'static str,
    body: Vec<u8>,
    status: u16,
    field: Option<&'static str>,
}

fn case(about: &'static str, body: impl Into<Vec<u8>>, status: u16, field: impl Into<Option<&'static str>>) -> Case {
    Case { about, body: body.into(), status, field: field.into() }
}

fn order() -> Value {
    json!({
        "customer_id": CUSTOMER,
        "currency": "EUR",
        "lines": [{ "sku": "mug", "quantity": 1, "unit_price": 1_999 }],
    })
}

/// A good order with one member changed.
fn with(pointer: &str, value: Value) -> String {
    let mut order = order();
    if let Some(member) = order.pointer_mut(pointer) {
        *member = value;
    }
    order.to_string()
}

/// A good order with the text of its SKU, number or brace replaced by text that no JSON library would write.
fn spelled(from: &str, to: &str) -> String {
    order().to_string().replace(from, to)
}

fn typed_wrong() -> Vec<Case> {
    let line = json!({ "sku": "mug", "quantity": 1, "unit_price": 1_999 });
    let many = |count: usize| -> Value {
        (0..count).map(|n| json!({ "sku": format!("s{n}"), "quantity": 1, "unit_price": 1 })).collect()
    };
    vec![
        case("a number as customer", with("/customer_id", json!(7)), 422, "customer_id"),
        case("no UUID as customer", with("/customer_id", json!("me")), 422, "customer_id"),
        case("null as customer", with("/customer_id", Value::Null), 422, "customer_id"),
        case("a number as currency", with("/currency", json!(978)), 422, "currency"),
        case("an unknown currency", with("/currency", json!("XQZ")), 422, "currency"),
        case("a currency in small letters", with("/currency", json!("eur")), 422, "currency"),
        case("an object as lines", with("/lines", json!({})), 422, "lines"),
        case("no lines", with("/lines", json!([])), 422, "lines"),
        case("more lines than allowed", with("/lines", many(201)), 422, "lines"),
        case("one SKU twice", with("/lines", json!([line, line])), 422, "lines[1].sku"),
        case("a number as line", with("/lines", json!([3])), 422, "lines[0]"),
        case("text as quantity", with("/lines/0/quantity", json!("1")), 422, "lines[0].quantity"),
        case("a quantity of zero", with("/lines/0/quantity", json!(0)), 422, "lines[0].quantity"),
        case("a negative quantity", with("/lines/0/quantity", json!(-1)), 422, "lines[0].quantity"),
        case("half a piece", with("/lines/0/quantity", json!(0.5)), 422, "lines[0].quantity"),
        case("a fractional price", with("/lines/0/unit_price", json!(19.99)), 422, "lines[0].unit_price"),
        case("a negative price", with("/lines/0/unit_price", json!(-1)), 422, "lines[0].unit_price"),
        case(
            "a price beyond 2^53",
            with("/lines/0/unit_price", json!(9_007_199_254_740_992_i64)),
            422,
            "lines[0].unit_price",
        ),
        case("a price beyond 2^63", spelled("1999", "9223372036854775808"), 422, "lines[0].unit_price"),
        case("a price of 400 digits", spelled("1999", &"9".repeat(400)), 422, "lines[0].unit_price"),
        case("a total of nothing", with("/lines/0/unit_price", json!(0)), 422, "lines"),
        case("an empty SKU", with("/lines/0/sku", json!("")), 422, "lines[0].sku"),
        case("a path as SKU", with("/lines/0/sku", json!("../stock")), 422, "lines[0].sku"),
        case("a SKU of 65 letters", with("/lines/0/sku", json!("s".repeat(65))), 422, "lines[0].sku"),
        case("an unknown field", spelled(r#""currency""#, r#""coupon":"x","currency""#), 422, "coupon"),
        case("an unknown field in a line", spelled(r#""quantity""#, r#""gift":true,"quantity""#), 422, "lines[0].gift"),
        case("a missing field", spelled(r#""currency":"EUR","#, ""), 422, "currency"),
        case("a field twice", spelled(r#""currency":"EUR""#, r#""currency":"EUR","currency":"USD""#), 422, "currency"),
    ]
}

fn not_quite_json() -> Vec<Case> {
    let deep = format!(r#"{{"lines":{}{}}}"#, "[".repeat(20_000), "]".repeat(20_000));
    vec![
        case("NUL in a SKU", spelled("mug", r"m\u0000g"), 422, "lines[0].sku"),
        case("half a surrogate pair", spelled("mug", r"m\ud800g"), 422, "lines[0].sku"),
        case(
            "bytes that are no UTF-8",
            spelled("mug", "m?g")
                .replace('?', "\u{fffd}")
                .into_bytes()
                .into_iter()
                .map(|byte| if byte > 0x7f { 0xff } else { byte })
                .collect::<Vec<u8>>(),
            400,
            None,
        ),
        case("20 000 levels", deep, 400, None),
        case(
            "10 000 lines",
            with(
                "/lines",
                (0..10_000).map(|n| json!({ "sku": format!("s{n}"), "quantity": 1, "unit_price": 1 })).collect(),
            ),
            413,
            None,
        ),
        case("1 MiB of spaces", vec![b' '; 1 << 20], 413, None),
        case("text", "one mug please", 400, None),
        case("an array", "[]", 400, None),
        case("half an object", r#"{"customer_id":"#, 400, None),
        case("two objects", format!("{0}{0}", order()), 400, None),
        case("a byte order mark", format!("\u{feff}{}", order()), 400, None),
        case("nothing", "", 400, None),
    ]
}

/// An RFC 9457 document that says what is wrong and where.
fn is_problem(reply: &Reply, case: &Case) -> Result<()> {
    let about = case.about;
    ensure!(reply.status == case.status, "{about}: expected {}, was {}: {}", case.status, reply.status, reply.text);
    ensure!(reply.header("content-type") == Some("application/problem+json"), "{about}: {:?}", reply.headers);
    let problem = &reply.body;
    let complete = ["type", "title", "detail", "instance"].iter().all(|member| problem[member].is_string());
    ensure!(complete && problem["status"] == case.status, "{about}: {problem}");
    let Some(field) = case.field else { return Ok(()) };
    let errors = problem["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named = errors.iter().any(|error| error["field"] == field && error["detail"].is_string());
    ensure!(named, "{about}: {field} is not named in {problem}");
    Ok(())
}

fn post(path: &str, service: Service) -> Request {
    Request::new(service, Method::POST, path).header("content-type", "application/json")
}

#[test]
fn every_bad_order_is_refused_with_what_is_wrong_and_leaves_nothing() -> Result<()> {
    in_shared_shop(async |shop| {
        let before = shop.servers().count(Service::Orders, "select count(*) from orders").await?;
        let cases: Vec<Case> = typed_wrong().into_iter().chain(not_quite_json()).collect();
        for case in cases {
            let request = post("/orders", Service::Orders).key(shop.next_key()).body(case.body.clone());
            is_problem(&shop.send(&request).await?, &case)?;
        }
        for (content_type, status) in
            [("text/plain", 415), ("application/xml", 415), ("application/json; charset=latin1", 415)]
        {
            let request = Request::new(Service::Orders, Method::POST, "/orders").key(shop.next_key());
            let request = request.header("content-type", content_type).body(order().to_string());
            is_problem(&shop.send(&request).await?, &case(content_type, "", status, None))?;
        }
        let after = shop.servers().count(Service::Orders, "select count(*) from orders").await?;
        ensure!(before == after, "a refused order exists");
        prove_life(shop).await
    })
}

#[test]
fn bad_amounts_and_counts_are_refused_and_leave_nothing() -> Result<()> {
    in_shared_shop(async |shop| {
        let customer = shop.customer("EUR", 100).await?;
        let deposits = format!("/accounts/{customer}/deposits");
        for (amount, field) in [
            ("-1", "amount"),
            ("0", "amount"),
            ("0.5", "amount"),
            ("1e400", "amount"),
            ("9007199254740992", "amount"),
            ("\"5\"", "amount"),
            ("null", "amount"),
        ] {
            let request = post(&deposits, Service::Payments).key(shop.next_key());
            let reply = shop.send(&request.body(format!(r#"{{"amount":{amount}}}"#))).await?;
            is_problem(&reply, &case("a deposit", "", 422, field))?;
        }
        ensure!(shop.balance(customer).await? == 100);
        let sku = shop.stocked(5).await?;
        for count in ["-1", "1.5", "9007199254740992", "\"5\"", "null"] {
            let request = Request::new(Service::Inventory, Method::PUT, format!("/stock/{sku}")).key(shop.next_key());
            let request = request.header("content-type", "application/json").body(format!(r#"{{"on_hand":{count}}}"#));
            is_problem(&shop.send(&request).await?, &case("a count of stock", "", 422, "on_hand"))?;
        }
        prove_life(shop).await
    })
}

#[test]
fn what_does_not_exist_is_a_problem_too() -> Result<()> {
    in_shared_shop(async |shop| {
        let nobody = shop.stranger();
        let cases = [
            (Service::Orders, Method::GET, format!("/orders/{nobody}"), 404),
            (Service::Orders, Method::POST, format!("/orders/{nobody}/cancel"), 404),
            (Service::Orders, Method::GET, "/nowhere".to_owned(), 404),
            (Service::Orders, Method::DELETE, "/orders".to_owned(), 405),
            (Service::Payments, Method::GET, format!("/accounts/{nobody}"), 404),
            (Service::Inventory, Method::GET, "/stock/never-kept".to_owned(), 404),
        ];
        for (service, method, path, status) in cases {
            let reply = shop.send(&Request::new(service, method, &path).key(shop.next_key())).await?;
            is_problem(&reply, &case("nothing there", "", status, None))?;
        }
        refused_parameters(shop).await?;
        prove_life(shop).await
    })
}

async fn refused_parameters(shop: &Shop) -> Result<()> {
    for (query, field) in [
        ("status=paid", "status"),
        ("limit=0", "limit"),
        ("limit=999", "limit"),
        ("cursor=%21", "cursor"),
        ("colour=red", "colour"),
    ] {
        let reply = shop.send(&Request::new(Service::Orders, Method::GET, format!("/orders?{query}"))).await?;
        ensure!((400..500).contains(&reply.status), "{query}: {}", reply.text);
        let errors = reply.body["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
        ensure!(errors.iter().any(|error| error["field"] == field), "{query}: {}", reply.text);
    }
    Ok(())
}
