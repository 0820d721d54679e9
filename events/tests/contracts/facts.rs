//! The nine facts, to the letter: names, keys, members and the part that each plays.

use std::collections::BTreeSet;

use envelope::subject;
use events::{Contract, Outcome, all};
use serde_json::{Value, json};

use crate::samples;

type Row = (&'static str, &'static [&'static str], &'static [Outcome]);

/// The table of the contract, written down a second time.
const TABLE: [Row; 9] = [
    (
        "orders.order_created.v1",
        &["order_id", "customer_id", "total", "lines"],
        &[Outcome::Entry, Outcome::Effect { undone_by: "orders.order_cancelled" }],
    ),
    ("orders.order_confirmed.v1", &["order_id"], &[Outcome::End]),
    ("orders.order_cancelled.v1", &["order_id", "reason"], &[Outcome::Undo, Outcome::End]),
    (
        "payments.payment_processed.v1",
        &["order_id", "payment_id", "customer_id", "amount"],
        &[Outcome::Effect { undone_by: "payments.refund_issued" }],
    ),
    ("payments.payment_declined.v1", &["order_id", "customer_id", "amount", "reason"], &[Outcome::Failure]),
    ("payments.refund_issued.v1", &["order_id", "payment_id", "refund_id", "amount", "reason"], &[Outcome::Undo]),
    (
        "inventory.inventory_reserved.v1",
        &["order_id", "reservation_id", "lines"],
        &[Outcome::Effect { undone_by: "inventory.inventory_released" }],
    ),
    ("inventory.inventory_failed.v1", &["order_id", "reason", "shortages"], &[Outcome::Failure]),
    ("inventory.inventory_released.v1", &["order_id", "reservation_id", "lines"], &[Outcome::Undo]),
];

#[test]
fn the_facts_are_these() {
    let declared: Vec<_> = all().iter().map(|fact| (fact.event_type.to_string(), fact.outcomes)).collect();
    let table: Vec<_> = TABLE.iter().map(|(name, _, outcomes)| ((*name).to_owned(), *outcomes)).collect();
    assert_eq!(declared, table);
    for (fact, (name, members, _)) in all().iter().zip(TABLE) {
        let members: BTreeSet<_> = members.iter().copied().collect();
        let properties: BTreeSet<_> =
            fact.schema["properties"].as_object().expect("members").keys().map(String::as_str).collect();
        let required: BTreeSet<_> =
            fact.schema["required"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        assert_eq!((&properties, &required), (&members, &members), "{name}");
        assert_eq!(fact.publisher, fact.event_type.domain, "{name}");
    }
}

/// Money, lines and shortages have the members that the contract names.
#[test]
fn the_nested_shapes_are_these() {
    let members = |name: &str, pointer: &str| -> Vec<String> {
        let fact = all().into_iter().find(|fact| fact.event_type.to_string() == name).expect("a fact");
        let schema = fact.schema.pointer(pointer).unwrap_or_else(|| panic!("{name} {pointer}"));
        schema["properties"].as_object().expect("members").keys().cloned().collect()
    };
    let line = "/properties/lines/items";
    assert_eq!(members("orders.order_created.v1", line), ["quantity", "sku", "unit_price"]);
    assert_eq!(members("inventory.inventory_reserved.v1", line), ["quantity", "sku"]);
    assert_eq!(members("inventory.inventory_released.v1", line), ["quantity", "sku"]);
    let shortage = "/properties/shortages/items";
    assert_eq!(members("inventory.inventory_failed.v1", shortage), ["available", "requested", "sku"]);
    for (name, pointer) in [
        ("orders.order_created.v1", "/properties/total"),
        ("orders.order_created.v1", "/properties/lines/items/properties/unit_price"),
        ("payments.payment_processed.v1", "/properties/amount"),
        ("payments.payment_declined.v1", "/properties/amount"),
        ("payments.refund_issued.v1", "/properties/amount"),
    ] {
        assert_eq!(members(name, pointer), ["currency", "minor", "scale"], "{name} {pointer}");
    }
}

/// The key is the order, whoever speaks: all facts of an order share a bucket.
#[test]
fn the_key_is_the_member_that_is_declared() {
    fn key_of<C: Contract>(body: &Value) -> (String, String) {
        let event: C = serde_json::from_value(body.clone()).expect("a sample");
        (event.key(), subject::<C>(&event.key()).expect("a subject").as_str().to_owned())
    }
    for (declared, path, body) in samples::current() {
        let (key, subject) = match declared.event_type.name.as_str() {
            "order_created" => key_of::<events::OrderCreated>(&body),
            "order_confirmed" => key_of::<events::OrderConfirmed>(&body),
            "order_cancelled" => key_of::<events::OrderCancelled>(&body),
            "payment_processed" => key_of::<events::PaymentProcessed>(&body),
            "payment_declined" => key_of::<events::PaymentDeclined>(&body),
            "refund_issued" => key_of::<events::RefundIssued>(&body),
            "inventory_reserved" => key_of::<events::InventoryReserved>(&body),
            "inventory_failed" => key_of::<events::InventoryFailed>(&body),
            "inventory_released" => key_of::<events::InventoryReleased>(&body),
            other => panic!("{other} is not in this test"),
        };
        assert_eq!(declared.key, "order_id");
        assert_eq!(json!(key), body["order_id"], "{}", path.display());
        assert!(subject.starts_with(&format!("evt.{}.", declared.event_type)), "{subject}");
        assert_eq!(subject.rsplit('.').next(), Some(envelope::bucket(&key).to_string().as_str()));
    }
}

/// Every undo exists, and says that it is one.
#[test]
fn effects_name_their_undo() {
    for effect in all() {
        let Some(undo) = effect.undone_by() else { continue };
        let undo = all().into_iter().find(|fact| fact.event_type.fact() == undo);
        let undo = undo.unwrap_or_else(|| panic!("{}: no such undo", effect.event_type));
        assert!(undo.outcomes.contains(&Outcome::Undo), "{}", undo.event_type);
        assert_eq!(undo.publisher, effect.publisher, "who has the effect undoes it");
    }
}
