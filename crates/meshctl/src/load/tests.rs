use std::time::Duration;

use envelope::Timestamp;
use uuid::Uuid;

use super::mix::{Kind, Mix};
use super::report::{self, Report};
use super::send::Sent;
use super::service_url;
use super::watch::{Facts, Seen};

/// 2026-01-31T09:30:00.000Z
const START_MS: i64 = 1_769_851_800_000;

fn at(millis: i64) -> Timestamp {
    let nanos = i128::from(START_MS + millis) * 1_000_000;
    Timestamp::from_offset(time::OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap())
}

fn seen(fact: &str, stored_ms: i64, reason: Option<&str>) -> Seen {
    Seen { fact: fact.to_owned(), time: at(stored_ms - 1), stored_at: at(stored_ms), reason: reason.map(str::to_owned) }
}

/// Created at 0, and one end.
fn order(end: &str, stored_ms: i64, reason: Option<&str>) -> Vec<Seen> {
    vec![seen("orders.order_created", 1, None), seen(end, stored_ms, reason)]
}

fn sent(id: u128, meant: Kind) -> Sent {
    Sent { order_id: Uuid::from_u128(id), meant }
}

fn report(orders: &[(Sent, Vec<Seen>)]) -> (Report, serde_json::Value) {
    let facts: Facts = orders.iter().map(|(sent, facts)| (sent.order_id, facts.clone())).collect();
    let report =
        Report::new(orders.iter().map(|(sent, _)| *sent).collect(), Vec::new(), &facts, Duration::from_secs(2));
    let json = serde_json::to_value(&report).unwrap();
    (report, json)
}

#[test]
fn a_mix_is_spread_evenly_and_the_same_in_every_run() {
    let mix: Mix = "confirmed=2,declined=1,cancelled=1,out_of_stock=0".parse().unwrap();
    let kinds: Vec<Kind> = mix.kinds().take(8).collect();
    let count = |kind: Kind| kinds.iter().filter(|sent| **sent == kind).count();
    assert_eq!((count(Kind::Confirmed), count(Kind::Declined), count(Kind::Cancelled)), (4, 2, 2));
    assert_eq!(kinds[..4], kinds[4..], "each round is like the one before");
    assert_eq!(kinds[0], Kind::Confirmed);
    let alone: Mix = "declined=3".parse().unwrap();
    assert!(alone.kinds().take(5).all(|kind| kind == Kind::Declined));
}

#[test]
fn a_mix_that_says_nothing_usable_is_refused() {
    for text in ["", "confirmed", "confirmed=x", "confirmed=-1", "lost=1", "confirmed=0", "confirmed=1,confirmed=2"] {
        assert!(text.parse::<Mix>().is_err(), "{text}");
    }
}

#[test]
fn every_end_is_told_by_its_facts() {
    let cancelled = "orders.order_cancelled";
    let (all, json) = report(&[
        (sent(1, Kind::Confirmed), order("orders.order_confirmed", 40, None)),
        (sent(2, Kind::Declined), order(cancelled, 30, Some("payment_declined"))),
        (sent(3, Kind::OutOfStock), order(cancelled, 60, Some("out_of_stock"))),
        (sent(4, Kind::Cancelled), order(cancelled, 20, Some("customer"))),
    ]);
    assert!(all.all_right(), "{all}");
    assert_eq!((&json["ended"]["confirmed"], &json["ended"]["out_of_stock"]), (&1.into(), &1.into()));
    assert_eq!((&json["sent"], &json["rate"]), (&4.into(), &2.0.into()));
    assert_eq!(json["latency_by_end"]["confirmed"]["p99_ms"], 40);
}

#[test]
fn an_order_that_ends_otherwise_or_not_at_all_is_wrong() {
    let of = |meant, facts| report(&[(sent(1, meant), facts)]);
    let (late, json) = of(Kind::Confirmed, order("orders.order_cancelled", 20, Some("deadline")));
    assert!(!late.all_right());
    assert_eq!(json["wrong"][0]["found"], "orders.order_cancelled (deadline)");
    let (none, json) = of(Kind::Confirmed, vec![seen("orders.order_created", 1, None)]);
    assert!(!none.all_right());
    assert_eq!((&json["unfinished"], &json["latency"]), (&1.into(), &serde_json::Value::Null));
    let (lost, json) = of(Kind::Declined, Vec::new());
    assert!(!lost.all_right());
    assert_eq!(json["wrong"][0]["found"], "no fact");
}

/// An order is cancelled before its refund is issued; it has ended with the refund.
#[test]
fn a_cancelled_order_has_ended_when_everything_is_undone() {
    let mut facts = order("orders.order_cancelled", 20, Some("customer"));
    let one = [sent(1, Kind::Cancelled)];
    let ended = |facts: &[Seen]| report::ended(&one, &Facts::from([(Uuid::from_u128(1), facts.to_vec())]));
    assert_eq!(ended(&facts), 1);
    facts.push(seen("payments.payment_processed", 25, None));
    assert_eq!(ended(&facts), 0);
    facts.push(seen("payments.refund_issued", 30, None));
    facts.push(seen("inventory.inventory_reserved", 35, None));
    assert_eq!(ended(&facts), 0);
    facts.push(seen("inventory.inventory_released", 40, None));
    assert_eq!(ended(&facts), 1);
}

#[test]
fn percentiles_are_times_that_were_measured() {
    let orders = (1..=200).map(|number| {
        let end = order("orders.order_confirmed", i64::try_from(number).unwrap(), None);
        (sent(number, Kind::Confirmed), end)
    });
    let (_, json) = report(&orders.collect::<Vec<_>>());
    // Of 200 times 1..=200: half are not above 100, 190 not above 190, 198 not above 198.
    let latency = &json["latency"];
    let found = ["p50_ms", "p95_ms", "p99_ms", "max_ms"].map(|name| latency[name].as_i64().unwrap());
    assert_eq!(found, [100, 190, 198, 200]);
}

#[test]
fn one_refused_request_makes_the_run_wrong() {
    let report =
        Report::new(Vec::new(), vec!["orders does not answer".to_owned()], &Facts::new(), Duration::from_secs(1));
    assert!(!report.all_right());
    assert!(report.to_string().contains("refused: orders does not answer"));
}

#[test]
fn addresses_name_their_service() {
    assert_eq!(service_url("orders=http://h:1/").unwrap(), ("orders".to_owned(), "http://h:1".to_owned()));
    assert!(service_url("http://h:1").is_err() && service_url("orders=").is_err());
}
