//! States of flows, and reading a while of the stream.

use std::collections::HashMap;

use super::*;
use crate::flows::scan::{self, Since};
use crate::flows::state::FlowState;

fn declined() -> Said {
    Said { event_type: "payments.payment_declined.v1", ..processed() }
}

fn reserved() -> Said {
    Said { event_type: "inventory.inventory_reserved.v1", emitter: "inventory/reserve-stock@1.0", ..failed() }
}

fn released() -> Said {
    Said { id: 9, event_type: "inventory.inventory_released.v1", key_sequence: 2, at_ms: 500, ..reserved() }
}

fn confirmed() -> Said {
    Said { event_type: "orders.order_confirmed.v1", ..cancelled() }
}

/// The state at `now_ms` of a flow with these facts, in this order.
fn state(facts: &[Said], now_ms: i64) -> FlowState {
    let stored = (1..).zip(facts).map(|(place, fact)| fact.stored(place, fact.at_ms)).collect();
    told(stored, now_ms).state
}

/// Steps are due after 30 s, the order after 120 s (`events/src/flow.rs`).
#[test]
fn every_state_is_what_its_facts_and_the_time_make_it() {
    use FlowState::{Cancelled, Compensating, Completed, Late, Running, Stuck};
    let cases: [(&str, Vec<Said>, i64, FlowState); 15] = [
        ("just placed", vec![created()], 1_000, Running),
        ("paid", vec![created(), processed()], 1_000, Running),
        ("paid, at the last moment", vec![created(), processed()], 30_041, Running),
        ("paid, and not reserved in time", vec![created(), processed()], 30_042, Late),
        ("the deadline is not over", vec![created()], 120_000, Late),
        ("the deadline is over", vec![created()], 120_001, Stuck),
        ("reserved", vec![created(), processed(), reserved()], 1_000, Running),
        ("confirmed", vec![created(), processed(), reserved(), confirmed()], 1_000, Completed),
        ("confirmed long ago", vec![created(), processed(), reserved(), confirmed()], 999_000, Completed),
        ("declined", vec![created(), declined()], 1_000, Compensating),
        ("declined and cancelled", vec![created(), declined(), cancelled()], 1_000, Cancelled),
        ("out of stock", vec![created(), processed(), failed()], 1_000, Compensating),
        ("cancelled, and the refund is owed", vec![created(), processed(), cancelled()], 1_000, Compensating),
        ("cancelled, and the refund is late", vec![created(), processed(), cancelled()], 31_000, Late),
        ("cancelled and refunded", vec![created(), processed(), refunded(), cancelled()], 1_000, Cancelled),
    ];
    for (name, facts, now_ms, expected) in cases {
        assert_eq!(state(&facts, now_ms), expected, "{name}");
    }
    // A reservation is undone as well, whatever was before it.
    let facts = [created(), processed(), reserved(), cancelled(), refunded()];
    assert_eq!(state(&facts, 1_000), Compensating);
    let facts = [created(), processed(), reserved(), cancelled(), refunded(), released()];
    assert_eq!(state(&facts, 1_000), Cancelled);
}

#[test]
fn a_flow_without_its_beginning_has_no_declared_state() {
    assert_eq!(state(&[processed()], 1_000), FlowState::Undeclared);
}

#[test]
fn a_while_tells_the_flows_that_began_in_it_and_counts_the_others() {
    // The id of the flow says when it began.
    let began = at(0);
    let facts = |facts: Vec<Said>| {
        let stored = (1..).zip(facts).map(|(place, fact)| fact.stored(place, fact.at_ms)).collect();
        HashMap::from([(ORDER, stored)])
    };
    let id_ms = i64::try_from(envelope::ids::millis(ORDER)).unwrap();
    let (before, after) = (at(id_ms - START_MS - 1), at(id_ms - START_MS + 1));
    let whole = scan::told(facts(vec![created(), processed()]), 2, before, began);
    assert_eq!((whole.flows.len(), whole.begun_earlier), (1, 0));
    let part = scan::told(facts(vec![processed()]), 2, after, began);
    assert_eq!((part.flows.len(), part.begun_earlier), (0, 1));
    // It began in the while and its first fact is not there: that is told, and not hidden as earlier.
    let lost = scan::told(facts(vec![processed()]), 2, before, began);
    assert_eq!((lost.flows.len(), lost.begun_earlier), (1, 0));
}

#[test]
fn times_are_said_as_people_say_them() {
    let now = at(0);
    let ago = |text: &str| now.unix_millis() - text.parse::<Since>().unwrap().before(now).unix_millis();
    assert_eq!([ago("90s"), ago("15m"), ago("2h"), ago("7d")], [90_000, 900_000, 7_200_000, 604_800_000]);
    let then: Since = "2026-01-31T09:29:59Z".parse().unwrap();
    assert_eq!(then.before(now), at(-1_000));
    for text in ["", "h", "2", "-2h", "2w", "yesterday", "1.5h", "2026-01-31", "ü"] {
        assert!(text.parse::<Since>().is_err(), "{text}");
    }
}
