mod states;
mod why;

use envelope::{EventType, Metadata, RawMessage, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use super::fact::StoredFact;
use super::timeline::Timeline;

const ORDER: Uuid = Uuid::from_u128(0x0198_c2f0_0000_7000_8000_0000_0000_0001);
/// 2026-01-31T09:30:00.000Z
const START_MS: i64 = 1_769_851_800_000;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_offset(
        time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(START_MS + millis) * 1_000_000).unwrap(),
    )
}

/// A fact of the flow under construction.
struct Said {
    id: u128,
    cause: Option<u128>,
    emitter: &'static str,
    event_type: &'static str,
    at_ms: i64,
    key_sequence: u64,
    data: Value,
}

impl Said {
    fn stored(&self, stream_sequence: u64, stored_ms: i64) -> StoredFact {
        let event_type: EventType = self.event_type.parse().unwrap();
        let service = self.emitter.split('/').next().unwrap();
        let metadata = Metadata {
            id: Uuid::from_u128(self.id),
            source: format!("urn:mesh:{service}"),
            event_type: event_type.clone(),
            time: at(self.at_ms),
            key: ORDER.to_string(),
            revision: 1,
            correlation_id: ORDER,
            causation_id: self.cause.map(Uuid::from_u128),
            sequence: self.key_sequence,
            emitter: self.emitter.to_owned(),
            hops: 0,
            trace: None,
            occurrence_id: None,
            extensions: Vec::new(),
        };
        let raw = RawMessage {
            subject: envelope::Subject::new(&event_type, &metadata.key).unwrap().to_string(),
            headers: metadata.to_headers().unwrap(),
            body: self.data.to_string().into_bytes(),
        };
        StoredFact::new(stream_sequence, at(stored_ms), &raw).unwrap()
    }
}

fn euro(minor: i64) -> Value {
    json!({ "minor": minor, "currency": "EUR", "scale": 2 })
}

fn created() -> Said {
    Said {
        id: 1,
        cause: None,
        emitter: "orders/place-order@1.0",
        event_type: "orders.order_created.v1",
        at_ms: 0,
        key_sequence: 1,
        data: json!({ "order_id": ORDER, "total": euro(3998), "lines": [{ "sku": "mug", "quantity": 2 }] }),
    }
}

fn processed() -> Said {
    Said {
        id: 2,
        cause: Some(1),
        emitter: "payments/charge-customer@1.0",
        event_type: "payments.payment_processed.v1",
        at_ms: 41,
        key_sequence: 1,
        data: json!({ "order_id": ORDER, "amount": euro(3998) }),
    }
}

fn failed() -> Said {
    Said {
        id: 3,
        cause: Some(2),
        emitter: "inventory/reserve-stock@1.0",
        event_type: "inventory.inventory_failed.v1",
        at_ms: 187,
        key_sequence: 1,
        data: json!({
            "order_id": ORDER, "reason": "out_of_stock",
            "shortages": [{ "sku": "mug", "requested": 2, "available": 0 }]
        }),
    }
}

fn refunded() -> Said {
    Said {
        id: 4,
        cause: Some(3),
        emitter: "payments/refund-failed-order@1.0",
        event_type: "payments.refund_issued.v1",
        at_ms: 302,
        key_sequence: 2,
        data: json!({ "order_id": ORDER, "amount": euro(3998), "reason": "out_of_stock" }),
    }
}

fn cancelled() -> Said {
    Said {
        id: 5,
        cause: Some(4),
        emitter: "orders/cancel-refunded-order@1.0",
        event_type: "orders.order_cancelled.v1",
        at_ms: 412,
        key_sequence: 2,
        data: json!({ "order_id": ORDER, "reason": "out_of_stock" }),
    }
}

fn told(facts: Vec<StoredFact>, now_ms: i64) -> Timeline {
    Timeline::new(ORDER, facts, &events::flow::all(), at(now_ms)).unwrap()
}

#[test]
fn a_refunded_order_is_told_from_its_facts() {
    let facts = vec![
        created().stored(11, 3),
        processed().stored(14, 44),
        failed().stored(15, 190),
        // The relay of payments was held up, and then said it twice.
        refunded().stored(19, 2_802),
        refunded().stored(20, 2_803),
        Said { at_ms: 2_825, ..cancelled() }.stored(23, 2_830),
    ];
    let expected = "\
order 0198c2f0-0000-7000-8000-000000000001: finished with OrderCancelled after 2825 ms, 5 facts, 1 duplicate

     +0 ms  orders     OrderCreated            2 x mug, 39.98 EUR        place-order
    +41 ms  payments     PaymentProcessed      39.98 EUR                 charge-customer, because of OrderCreated
   +187 ms  inventory      InventoryFailed     out_of_stock, 0 of 2 mug  reserve-stock, because of PaymentProcessed
   +302 ms  payments         RefundIssued      39.98 EUR, out_of_stock   refund-failed-order, because of \
InventoryFailed, published 2500 ms later, stored again at 20
  +2825 ms  orders             OrderCancelled  out_of_stock              cancel-refunded-order, because of RefundIssued
";
    assert_eq!(told(facts, 5_000).to_string(), expected);
}

#[test]
fn what_is_still_owed_is_told_with_its_owner() {
    let facts = vec![created().stored(11, 3), processed().stored(14, 44)];
    let expected = "\
order 0198c2f0-0000-7000-8000-000000000001: not finished after 41 ms, 2 facts

   +0 ms  orders    OrderCreated        2 x mug, 39.98 EUR  place-order
  +41 ms  payments    PaymentProcessed  39.98 EUR           charge-customer, because of OrderCreated

still expected:
  inventory owes InventoryReserved or InventoryFailed or OrderCancelled, because of PaymentProcessed; late by 9959 ms
  orders owes OrderConfirmed or OrderCancelled, because of OrderCreated; due in 80.0 s
";
    assert_eq!(told(facts, 40_000).to_string(), expected);
}

#[test]
fn an_order_that_was_charged_and_cancelled_owes_the_refund_before_it_is_finished() {
    let cancel = Said { cause: Some(1), emitter: "orders/cancel-order@1.0", ..cancelled() };
    let timeline = told(vec![created().stored(1, 0), processed().stored(2, 50), cancel.stored(3, 420)], 1_000);
    assert!(!timeline.finished);
    assert_eq!(timeline.ended_with, ["orders.order_cancelled"]);
    let owed: Vec<_> = timeline.expected.iter().map(|step| (step.owner.as_str(), step.expect.clone())).collect();
    assert_eq!(owed, [("payments", vec!["payments.refund_issued".to_owned()])]);
}

#[test]
fn the_order_is_that_of_the_stream_not_that_of_clocks() {
    let ahead = Said { at_ms: -7, ..processed() };
    let timeline = told(vec![ahead.stored(2, 1), created().stored(1, 0)], 10);
    let order: Vec<_> = timeline.facts.iter().map(|fact| (fact.fact(), fact.delay_ms)).collect();
    assert_eq!(order, [("orders.order_created", 0), ("payments.payment_processed", -7)]);
    assert!(timeline.to_string().contains("  -7 ms  payments"));
}

#[test]
fn facts_of_other_flows_are_left_out() {
    let other = Uuid::from_u128(7);
    assert!(Timeline::new(other, vec![created().stored(1, 0)], &events::flow::all(), at(0)).is_none());
}

#[test]
fn other_content_under_the_same_id_is_an_anomaly_and_no_duplicate() {
    let other = Said { data: json!({ "order_id": ORDER, "total": euro(1) }), ..created() };
    let timeline = told(vec![created().stored(1, 0), other.stored(5, 9)], 10);
    assert_eq!(timeline.facts[0].conflicts, [5]);
    assert!(timeline.facts[0].duplicates.is_empty());
    assert_eq!(timeline.anomalies, ["OrderCreated says something else at 5 than at 1, under one id"]);
}

#[test]
fn spelling_makes_no_other_content() {
    let mut again = created();
    // Members in another order and a null one say the same.
    again.data =
        json!({ "lines": [{ "quantity": 2, "sku": "mug" }], "total": euro(3998), "order_id": ORDER, "x": null });
    let timeline = told(vec![created().stored(1, 0), again.stored(5, 9)], 10);
    assert_eq!(timeline.facts[0].duplicates, [5]);
}

#[test]
fn holes_and_lost_causes_are_anomalies() {
    let timeline = told(vec![created().stored(1, 0), refunded().stored(9, 310)], 400);
    assert_eq!(
        timeline.anomalies,
        [
            "the cause of RefundIssued, 00000000-0000-0000-0000-000000000003, is not in the stream",
            "fact number 1 of payments is not in the stream, number 2 is",
        ]
    );
}

#[test]
fn two_ends_are_an_anomaly() {
    let confirmed = Said { id: 6, event_type: "orders.order_confirmed.v1", key_sequence: 3, ..cancelled() };
    let facts = vec![
        created().stored(1, 0),
        processed().stored(2, 50),
        failed().stored(3, 190),
        refunded().stored(4, 310),
        cancelled().stored(5, 420),
        confirmed.stored(6, 430),
    ];
    assert_eq!(told(facts, 1_000).anomalies, ["it ended in more than one way: OrderCancelled, OrderConfirmed"]);
}
