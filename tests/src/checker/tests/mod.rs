//! The checker has teeth: in a world in which one promise is broken, it says which.

mod world;

use super::{Evidence, Record, check};
use world::{CANCELLED, CONFIRMED, CUSTOMER, World};

/// What is broken, the check that must say so, and the breaking.
type Break = (&'static str, &'static str, fn(&mut Evidence, &mut Record));

const BREAKS: &[Break] = &[
    ("a charge twice", "money", |evidence, _| {
        let mut again = evidence.ledger[2].clone();
        again.version = 6;
        evidence.ledger.push(again);
    }),
    ("a refund lost", "money", |evidence, _| {
        evidence.ledger.retain(|entry| entry.kind != "refunded");
    }),
    ("a refund of a confirmed order", "money", |evidence, _| {
        let mut refund = evidence.ledger[2].clone();
        (refund.version, refund.kind) = (6, "refunded".to_owned());
        evidence.ledger.push(refund);
    }),
    ("a refund of another amount", "money", |evidence, _| evidence.ledger[4].minor -= 1),
    ("a confirmed order that nobody paid", "money", |evidence, _| {
        evidence.ledger.retain(|entry| entry.order_id != Some(CONFIRMED));
    }),
    ("a deposit that vanished", "money", |_, record| *record.deposits.entry(CUSTOMER).or_default() += 1),
    ("a balance that is not the sum", "money", |evidence, _| {
        evidence.shown.balances.insert(CUSTOMER, 0);
    }),
    ("a gap in the ledger", "money", |evidence, _| evidence.ledger[4].version = 9),
    ("a payment that the guard does not know", "money", |evidence, _| {
        evidence.payments.remove(&CONFIRMED);
    }),
    ("more reserved than there is", "stock", |evidence, _| {
        evidence.stock.entry("mug".to_owned()).and_modify(|stock| stock.reserved = 2);
    }),
    ("a reservation forgotten", "stock", |evidence, _| {
        evidence.stock.entry("mug".to_owned()).and_modify(|stock| stock.reserved = 0);
    }),
    ("a piece lost", "stock", |_, record| *record.stocked.entry("mug".to_owned()).or_default() += 1),
    ("a cancelled order that keeps its stock", "stock", |evidence, _| {
        evidence.reservations.entry(CANCELLED).and_modify(|reservation| reservation.state = "reserved".to_owned());
    }),
    ("an order that never ended", "orders", |evidence, _| {
        evidence.orders.entry(CONFIRMED).and_modify(|order| order.status = "pending".to_owned());
    }),
    ("an order lost", "orders", |evidence, _| {
        evidence.orders.remove(&CANCELLED);
    }),
    ("two orders for one request", "orders", |_, record| {
        record.orders.remove(&CANCELLED);
    }),
    ("a second last word", "orders", |evidence, _| {
        let last = evidence.stream.iter().position(|stored| stored.kind() == "orders.order_confirmed.v1");
        let mut again = evidence.stream[last.unwrap_or_default()].clone();
        World::rename(&mut again, 99);
        evidence.stream.push(again);
    }),
    ("an unsent fact", "outbox", |evidence, _| {
        evidence.mesh.entry("orders".to_owned()).and_modify(|tables| tables.unsent.push(CONFIRMED));
    }),
    ("a fact that the stream lost", "outbox", |evidence, _| {
        evidence.stream.pop();
    }),
    ("a fact that nobody committed", "outbox", |evidence, _| {
        evidence.mesh.entry("orders".to_owned()).and_modify(|tables| tables.sent.truncate(1));
    }),
    ("one id with two contents", "outbox", |evidence, _| {
        let mut other = evidence.stream[0].clone();
        (other.sequence, other.body) = (99, b"[]".to_vec());
        evidence.stream.push(other);
    }),
    ("a sequence that another message has", "outbox", |evidence, _| {
        evidence.mesh.entry("payments".to_owned()).and_modify(|tables| tables.sent[0].stream_sequence = 1);
    }),
    ("two facts of a key in the wrong order", "sequence", |evidence, _| {
        let last = evidence.stream.len() - 1;
        let of = |kind: &str| evidence.stream.iter().position(|stored| stored.kind() == kind).unwrap_or(last);
        let (created, confirmed) = (of("orders.order_created.v1"), of("orders.order_confirmed.v1"));
        evidence.stream.swap(created, confirmed);
    }),
    ("a version that was given out and never sent", "sequence", |evidence, _| {
        let versions = &mut evidence.mesh.entry("orders".to_owned()).or_default().versions;
        versions.values_mut().for_each(|version| *version += 1);
    }),
    ("an effect before its cause", "causality", |evidence, _| {
        let last = evidence.stream.len() - 1;
        evidence.stream.swap(1, last);
    }),
    ("a cause that does not exist", "causality", |evidence, _| World::orphan(&mut evidence.stream[1])),
    ("a fact that a subscriber never settled", "settlement", |evidence, _| {
        evidence.mesh.entry("inventory".to_owned()).and_modify(|tables| drop(tables.settled.pop()));
    }),
    ("a fact that a subscriber settled and gave up", "settlement", |evidence, _| {
        let tables = evidence.mesh.entry("payments".to_owned()).or_default();
        let (id, subscriber) = tables.settled[0].clone();
        tables.dead.push((id, World::letter("payments", &subscriber)));
    }),
    ("a dead letter that is lost", "settlement", |evidence, _| {
        let tables = evidence.mesh.entry("payments".to_owned()).or_default();
        tables.kept.push(tables.settled[0].clone());
    }),
    ("a delivery that still fails", "settlement", |evidence, _| {
        let tables = evidence.mesh.entry("payments".to_owned()).or_default();
        tables.unsettled.push(tables.settled[0].clone());
    }),
];

#[test]
fn a_whole_world_is_clean() {
    let World { evidence, record, expected } = World::whole();
    let report = check(&evidence, &record, &expected);
    assert!(report.is_clean(), "{report}");
}

#[test]
fn whatever_is_broken_is_found_by_the_check_that_is_there_for_it() {
    for (what, name, spoil) in BREAKS {
        let World { mut evidence, mut record, expected } = World::whole();
        spoil(&mut evidence, &mut record);
        let report = check(&evidence, &record, &expected);
        assert!(report.broken().contains(name), "{what} was not found by {name}:\n{report}");
    }
}

#[test]
fn a_check_that_looked_at_nothing_has_failed() {
    let report = check(&Evidence::default(), &Record::default(), &World::whole().expected);
    let all = ["money", "stock", "orders", "outbox", "sequence", "causality", "settlement"];
    assert_eq!(report.broken(), all, "{report}");
}

#[test]
fn forged_messages_count_only_as_what_was_expected_of_them() {
    let World { mut evidence, record, mut expected } = World::whole();
    let mut forged = evidence.stream[0].clone();
    World::rename(&mut forged, 99);
    evidence.stream.push(forged.clone());
    assert!(!check(&evidence, &record, &expected).is_clean(), "nobody was told about it");

    expected.forged.insert(99);
    for (service, subscriber) in [("payments", "charge-customer"), ("inventory", "note-order")] {
        let tables = evidence.mesh.entry(service.to_owned()).or_default();
        let id = forged.id().unwrap_or_default();
        tables.dead.push((id, World::letter(service, subscriber)));
        tables.kept.push((id, subscriber.to_owned()));
        expected.dead_letters.push(World::letter(service, subscriber));
    }
    let report = check(&evidence, &record, &expected);
    assert!(report.is_clean(), "{report}");

    expected.dead_letters.pop();
    assert_eq!(check(&evidence, &record, &expected).broken(), ["settlement"]);
}
