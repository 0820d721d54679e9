//! Causes, one by one, and their groups.

use std::collections::BTreeMap;

use super::*;
use crate::flows::cause::{self, Cause, Why};
use crate::flows::evidence::{Delivered, Sight, Unpublished};
use crate::flows::stuck::{self, Stuck};
use crate::ops::{Handler, Trouble};

/// Paid, and inventory owes the reservation. `note-order` and `reserve-stock` may say it.
fn paid() -> Timeline {
    told(vec![created().stored(11, 3), processed().stored(14, 44)], 40_000)
}

fn alive() -> Sight {
    let handler =
        |subscriber: &str| Handler { subscriber: subscriber.to_owned(), watermark: Some(10), retrying: Vec::new() };
    Sight {
        alive: true,
        explained: true,
        pending: Some(5),
        handlers: vec![handler("note-order"), handler("reserve-stock")],
        ..Sight::default()
    }
}

fn delivered(id: u128, subscriber: &str, state: &str, reason: Option<&str>) -> Delivered {
    Delivered {
        event_id: Uuid::from_u128(id),
        subscriber: subscriber.to_owned(),
        state: state.to_owned(),
        reason: reason.map(str::to_owned),
        error: (state != "handled").then(|| "boom".to_owned()),
        attempts: Some(2),
        behind: None,
    }
}

/// `note-order` heard of the order and waits for the payment, as it should.
fn noted() -> Delivered {
    delivered(1, "note-order", "no_effect", Some("awaiting_payment"))
}

fn why(timeline: &Timeline, sight: &Sight) -> Vec<Why> {
    cause::of(timeline, &events::catalogue::services().unwrap(), |_| sight.clone())
}

/// The one cause of the paid order.
fn cause(sight: &Sight) -> Cause {
    let [Why { service, cause, .. }] = &why(&paid(), sight)[..] else { panic!("{:?}", why(&paid(), sight)) };
    assert_eq!(service, "inventory");
    cause.clone()
}

#[test]
fn a_service_that_neither_tells_nor_answers_is_down() {
    assert_eq!(cause(&Sight::default()), Cause::SubscriberDown);
}

#[test]
fn a_delivery_that_nothing_is_known_about_was_not_reached() {
    let sight = Sight { deliveries: vec![noted()], ..alive() };
    assert_eq!(cause(&sight), Cause::NotReached { subscriber: "reserve-stock".to_owned(), pending: Some(5) });
}

#[test]
fn a_dead_letter_is_named_with_its_reason() {
    let sight = Sight { deliveries: vec![noted(), delivered(2, "reserve-stock", "dead", Some("rejected"))], ..alive() };
    let expected = Cause::DeadLetter {
        subscriber: "reserve-stock".to_owned(),
        event_id: Uuid::from_u128(2),
        state: "dead".to_owned(),
        reason: "rejected".to_owned(),
        error: "boom".to_owned(),
    };
    assert_eq!(cause(&sight), expected);
    assert!(cause(&sight).needs_a_person());
    let sight = Sight { deliveries: vec![delivered(2, "reserve-stock", "parked", Some("bad_body"))], ..alive() };
    assert!(matches!(cause(&sight), Cause::DeadLetter { reason, .. } if reason == "bad_body"));
}

#[test]
fn what_queues_up_behind_an_earlier_fact_names_it() {
    let behind = Some(Uuid::from_u128(77));
    let parked = Delivered { behind, ..delivered(2, "reserve-stock", "parked", Some("behind")) };
    let sight = Sight { deliveries: vec![noted(), parked], ..alive() };
    let expected = Cause::ParkedBehind { subscriber: "reserve-stock".to_owned(), behind: Uuid::from_u128(77) };
    assert_eq!(cause(&sight), expected);
}

#[test]
fn a_retry_tells_how_often_when_next_and_why() {
    let mut sight = Sight { deliveries: vec![noted(), delivered(2, "reserve-stock", "retrying", None)], ..alive() };
    let retrying = |attempt, attempts_max, next_at| Cause::Retrying {
        subscriber: "reserve-stock".to_owned(),
        attempt,
        attempts_max,
        next_at,
        error: "boom".to_owned(),
    };
    // The process that has it in hand is not heard: what is durable is known all the same.
    assert_eq!(cause(&sight), retrying(2, None, None));
    let trouble = Trouble {
        event_id: Uuid::from_u128(2),
        attempt: 3,
        attempts_max: 5,
        next_at: at(45_000),
        error: "boom".to_owned(),
    };
    sight.handlers[1].retrying.push(trouble);
    assert_eq!(cause(&sight), retrying(3, Some(5), Some(at(45_000))));
    // The database of the service is away, and its heartbeat is not.
    sight.deliveries.clear();
    sight.explained = false;
    assert_eq!(cause(&sight), retrying(3, Some(5), Some(at(45_000))));
}

#[test]
fn a_fact_in_the_outbox_is_not_published_yet() {
    let waiting = Unpublished {
        event_type: "inventory.inventory_reserved.v1".to_owned(),
        key: ORDER.to_string(),
        dead: false,
        error: Some("no stream".to_owned()),
        waiting_seconds: 12.5,
    };
    let expected = Cause::NotPublished {
        event_type: "inventory.inventory_reserved.v1".to_owned(),
        waiting_seconds: 12.5,
        error: Some("no stream".to_owned()),
        given_up: false,
    };
    let handled = delivered(2, "reserve-stock", "handled", None);
    let sight = Sight { deliveries: vec![noted(), handled.clone()], unpublished: vec![waiting.clone()], ..alive() };
    assert_eq!(cause(&sight), expected);
    let dead = Unpublished { dead: true, ..waiting.clone() };
    let sight = Sight { unpublished: vec![dead], ..sight };
    assert!(cause(&sight).needs_a_person());
    // A fact of another order, or one that settles something else, is no reason.
    for other in [
        Unpublished { key: "other".to_owned(), ..waiting.clone() },
        Unpublished { event_type: "inventory.inventory_released.v1".to_owned(), ..waiting },
    ] {
        let sight = Sight { deliveries: vec![noted(), handled.clone()], unpublished: vec![other], ..alive() };
        assert!(matches!(cause(&sight), Cause::NothingEmitted { .. }));
    }
}

#[test]
fn a_handler_that_said_nothing_is_told_with_its_rule_if_it_had_one() {
    let handled = delivered(2, "reserve-stock", "handled", None);
    let sight = Sight { deliveries: vec![noted(), handled], ..alive() };
    assert_eq!(cause(&sight), Cause::NothingEmitted { subscriber: "reserve-stock".to_owned(), reason: None });
    let skipped = delivered(2, "reserve-stock", "no_effect", Some("already_cancelled"));
    let sight = Sight { deliveries: vec![skipped, delivered(1, "note-order", "handled", None)], ..alive() };
    // The one that names no rule explains more.
    assert_eq!(cause(&sight), Cause::NothingEmitted { subscriber: "note-order".to_owned(), reason: None });
}

#[test]
fn the_other_fact_may_be_what_is_missing() {
    // The payment was handled first and waits for the order, which is a dead letter of `note-order`.
    let sight = Sight {
        deliveries: vec![
            delivered(1, "note-order", "dead", Some("rejected")),
            delivered(2, "reserve-stock", "no_effect", Some("awaiting_order")),
        ],
        ..alive()
    };
    assert!(matches!(cause(&sight), Cause::DeadLetter { subscriber, .. } if subscriber == "note-order"));
}

#[test]
fn what_is_settled_and_forgotten_is_unknown_and_so_is_what_nobody_says() {
    let mut sight = alive();
    sight.handlers.iter_mut().for_each(|handler| handler.watermark = Some(14));
    assert!(matches!(cause(&sight), Cause::Unknown { missing } if missing.contains("does not remember")));
    sight.handlers.iter_mut().for_each(|handler| handler.watermark = None);
    sight.explained = false;
    assert!(matches!(cause(&sight), Cause::Unknown { missing } if missing.contains("does not say")));
}

#[test]
fn a_step_that_no_subscriber_can_take_says_so() {
    let services: Vec<_> =
        events::catalogue::services().unwrap().into_iter().filter(|entry| entry.service != "inventory").collect();
    let found = cause::of(&paid(), &services, |_| alive());
    // The whole order is open as well, and its cause is the same kind of nothing.
    assert!(
        found.iter().any(|why| why.service == "inventory" && why.cause == Cause::NoSubscriber { actions: Vec::new() })
    );
    let actions = vec!["cancel-order".to_owned(), "order-deadline".to_owned()];
    assert!(
        found
            .iter()
            .any(|why| why.service == "orders" && why.cause == Cause::NoSubscriber { actions: actions.clone() })
    );
}

#[test]
fn flows_are_grouped_by_who_and_what_whatever_numbers_an_error_has() {
    let services = events::catalogue::services().unwrap();
    let flow = |id: u128, error: &str| {
        let mut flow = paid();
        flow.flow_id = Uuid::from_u128(id);
        flow.facts[1].id = Uuid::from_u128(id);
        let dead =
            Delivered { error: Some(error.to_owned()), ..delivered(id, "reserve-stock", "dead", Some("rejected")) };
        (flow, dead)
    };
    let (flows, mut deliveries): (Vec<Timeline>, Vec<Delivered>) =
        [flow(101, "row 17 is locked"), flow(102, "row 9 is locked"), flow(103, "out of paper")].into_iter().unzip();
    deliveries.push(noted());
    let sights = BTreeMap::from([("inventory".to_owned(), Sight { deliveries, ..alive() })]);
    let verb = Stuck { since: "1h".parse().unwrap(), service: None, open: false };
    let report = verb.report(flows, &services, &sights, 14, at(40_000));
    let groups = serde_json::to_value(&report).unwrap();
    let counts: Vec<_> = groups["groups"].as_array().unwrap().iter().map(|group| group["count"].clone()).collect();
    assert_eq!((&groups["flows"], counts), (&json!(3), vec![json!(2), json!(1)]));
    assert_eq!(groups["groups"][0]["cause"], "dead_letter");
    let expected = "\
3 flows do not go on

2 x InventoryReserved or InventoryFailed or OrderCancelled of inventory, the oldest since 40.0 s
  dead letter: reserve-stock keeps 00000000-0000-0000-0000-000000000065 (rejected): row 17 is locked
  00000000-0000-0000-0000-000000000065
  00000000-0000-0000-0000-000000000066

1 x InventoryReserved or InventoryFailed or OrderCancelled of inventory, the oldest since 40.0 s
  dead letter: reserve-stock keeps 00000000-0000-0000-0000-000000000067 (rejected): out of paper
  00000000-0000-0000-0000-000000000067
";
    assert_eq!(report.to_string(), expected);
    assert_eq!(stuck::normal("row 17 of 0198c2f0 is locked"), "row # of # is locked");
}

#[test]
fn what_is_in_time_is_stuck_only_when_it_needs_a_person() {
    let services = events::catalogue::services().unwrap();
    let young = || told(vec![created().stored(11, 3), processed().stored(14, 44)], 1_000);
    let verb = |open| Stuck { since: "1h".parse().unwrap(), service: None, open };
    let groups = |stuck: Stuck, deliveries: Vec<Delivered>| {
        let sights = BTreeMap::from([("inventory".to_owned(), Sight { deliveries, ..alive() })]);
        let report = stuck.report(vec![young()], &services, &sights, 14, at(1_000));
        serde_json::to_value(&report).unwrap()["groups"].as_array().unwrap().len()
    };
    let dead = || vec![noted(), delivered(2, "reserve-stock", "dead", Some("rejected"))];
    assert_eq!(groups(verb(false), vec![noted()]), 0);
    assert_eq!(groups(verb(true), vec![noted()]), 1);
    assert_eq!(groups(verb(false), dead()), 1);
    let others = Stuck { service: Some("payments".to_owned()), ..verb(true) };
    assert_eq!(groups(others, dead()), 0);
}
