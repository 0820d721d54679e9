use std::sync::Arc;
use std::time::Duration;

use super::heartbeat::{Identity, Reach};
use super::position::Position;
use super::*;
use crate::ServiceContext;
use crate::clock::{Clock, System};

fn context() -> Arc<ServiceContext> {
    ServiceContext::new("orders", "1.2.3", Arc::new(System))
}

fn waiting(sequence: u64) -> Retrying {
    let (attempt, attempts_max, next_at) = (2, 5, System.now());
    Retrying { sequence, attempt, attempts_max, next_at, error: "deadlock".to_owned() }
}

fn reach() -> (Option<Reach>, Reach) {
    let ok = Reach { ok: true, detail: None };
    (Some(ok.clone()), ok)
}

#[test]
fn more_events_than_can_wait_are_dropped_and_counted() {
    let ops = Ops::default();
    for count in 0..=EVENTS_MAX as u64 + 4 {
        ops.emit(System.now(), OpsEvent::DuplicateIgnored { subscriber: "s".to_owned(), count });
    }
    let kept = ops.take_events();
    assert_eq!((kept.len(), ops.events_dropped()), (EVENTS_MAX, 5));
    // What came first is told: the beginning of trouble says more than its hundredth repetition.
    assert_eq!(kept[0].1, OpsEvent::DuplicateIgnored { subscriber: "s".to_owned(), count: 0 });
}

#[test]
fn duplicates_and_skips_are_told_as_counts_and_then_forgotten() {
    let ops = Ops::default();
    for _ in 0..3 {
        ops.duplicate("charge");
        ops.skipped("note", "already_known");
    }
    ops.skipped("note", "too_late");
    let skipped = |reason: &str, count| OpsEvent::SkippedByRule {
        subscriber: "note".to_owned(),
        reason: reason.to_owned(),
        count,
    };
    let duplicates = OpsEvent::DuplicateIgnored { subscriber: "charge".to_owned(), count: 3 };
    assert_eq!(ops.take_counted(), [duplicates, skipped("already_known", 3), skipped("too_late", 1)]);
    assert_eq!(ops.take_counted(), []);
}

#[test]
fn a_heartbeat_lists_what_waits_and_counts_the_rest() {
    let (ops, context) = (Ops::default(), context());
    for at in (1..=25).rev() {
        ops.retrying(Uuid::from_u128(at.into()), "charge", waiting(at));
    }
    ops.retrying(Uuid::from_u128(7), "note", waiting(7));
    ops.settled(Uuid::from_u128(7), "charge");
    ops.kept(vec![Kept { subscriber: "note".to_owned(), parked: 2, dead: 1 }]);
    let gauges = Gauges { pending: 4, oldest: Duration::from_millis(1_500), failed: 1, parked: 2, dead: 1 };
    ops.outbox(gauges);
    ops.relay_trouble(System.now(), "no stream");
    ops.in_flight(3);
    let subscribers = vec!["charge", "note", "quiet"];
    let identity = Identity { contract: "0011223344556677".to_owned(), subscribers, started_at: System.now() };
    let position = Position { watermark: 31, pending: 2, unacknowledged: 9, clock_offset_ms: Some(-4) };
    let beat = serde_json::to_value(ops.heartbeat(&context, &identity, 8, Some(position), reach())).unwrap();
    assert_eq!((&beat["kind"], &beat["service"], &beat["number"]), (&"heartbeat".into(), &"orders".into(), &8.into()));
    assert_eq!(beat["instance"], context.instance.to_string());
    assert_eq!((&beat["in_flight"], &beat["clock_offset_ms"]), (&3.into(), &(-4).into()));
    assert_eq!(beat["outbox"]["unsent"], 4);
    assert_eq!(beat["outbox"]["oldest_seconds"], 1.5);
    assert_eq!(beat["outbox"]["last_error"]["error"], "no stream");
    let [charge, note, quiet] = &beat["handlers"].as_array().unwrap()[..] else { panic!("{beat}") };
    assert_eq!((&charge["retrying_count"], charge["retrying"].as_array().unwrap().len()), (&24.into(), 20));
    assert_eq!((&charge["retrying"][0]["sequence"], &charge["retrying"][6]["sequence"]), (&1.into(), &8.into()));
    assert_eq!((&note["parked"], &note["dead"], &note["retrying_count"]), (&2.into(), &1.into(), &1.into()));
    assert_eq!((&quiet["watermark"], &quiet["dead"]), (&31.into(), &0.into()));
    let blind = serde_json::to_value(ops.heartbeat(&context, &identity, 9, None, reach())).unwrap();
    assert!(blind["handlers"][0]["watermark"].is_null() && blind["pending"].is_null(), "not known is not zero");
}

#[test]
fn events_are_named_in_json_as_in_the_documents() {
    let page = include_str!("../../../../docs/operations-events.md");
    let id = Uuid::nil();
    let text = || "x".to_owned();
    let all = [
        OpsEvent::DeadLettered {
            subscriber: text(),
            event_id: id,
            event_type: text(),
            key: text(),
            flow_id: None,
            sequence: 1,
            state: "dead",
            reason: text(),
            detail: text(),
            attempts: 5,
        },
        OpsEvent::ParkedOutOfOrder {
            subscriber: text(),
            event_id: id,
            event_type: text(),
            key: text(),
            flow_id: None,
            sequence: 1,
            behind: None,
        },
        OpsEvent::Redriven { subscriber: text(), event_id: id, operation: Some(id) },
        OpsEvent::RedriveFailed { subscriber: text(), event_id: id, operation: None, error: text() },
        OpsEvent::DuplicateIgnored { subscriber: text(), count: 1 },
        OpsEvent::SkippedByRule { subscriber: text(), reason: text(), count: 1 },
        OpsEvent::Republished { event_id: id, event_type: text(), key: text(), lost_sequence: 1 },
        OpsEvent::RelayStalled { oldest_seconds: 30.0, unsent: 1, last_error: None },
        OpsEvent::StreamRollbackSeen { last_sequence_before: 2, last_sequence: 1, created_anew: false },
    ];
    for event in all {
        let json = serde_json::to_value(&event).unwrap();
        assert_eq!(json["event"], event.name());
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", event.name()))).unwrap();
        for member in json.as_object().unwrap().keys().filter(|member| *member != "event") {
            assert!(row.contains(&format!("`{member}`")), "{member} of {}", event.name());
        }
    }
}
