use serde_json::json;

use super::checks::{self, Load, Status};
use super::*;
use crate::outbox::Outbox;

fn status(ready: bool, checks: &serde_json::Value) -> Status {
    serde_json::from_value(json!({ "service": "orders", "ready": ready, "checks": checks })).unwrap()
}

fn outbox(pending: u64, oldest: f64, failed: u64) -> Outbox {
    let outbox = json!({ "service": "orders", "pending": pending, "oldest_pending_seconds": oldest, "failed": failed });
    serde_json::from_value(outbox).unwrap()
}

#[test]
fn a_server_before_2_14_is_too_old() {
    for (version, state) in [
        ("2.14.0", State::Ok),
        ("2.15.1", State::Ok),
        ("3.0.0", State::Ok),
        ("2.15.0-dev", State::Ok),
        ("2.12.6", State::Failed),
        ("2.9.25", State::Failed),
        ("", State::Failed),
    ] {
        assert_eq!(checks::version(version).state, state, "{version}");
    }
}

#[test]
fn acknowledging_before_the_disk_is_worth_a_warning() {
    assert_eq!(checks::sync(&json!({ "jetstream": { "config": { "sync_always": true } } })).state, State::Ok);
    let lazy = checks::sync(&json!({ "jetstream": { "config": { "sync_interval": 120_000_000_000_u64 } } }));
    assert_eq!(lazy.state, State::Warning);
    assert!(lazy.remedy.unwrap().contains("sync_interval: always"));
}

#[test]
fn a_consumer_that_nobody_pulls_from_has_failed() {
    let idle = Load { waiting: 1, ..Load::default() };
    let deserted = Load { pending: 7, ..Load::default() };
    let busy = [Load { pending: 9, ..deserted }, deserted];
    assert_eq!(checks::pulling("orders", &[idle], Some(256)).state, State::Ok);
    assert_eq!(checks::pulling("orders", &[deserted, deserted], Some(256)).state, State::Failed);
    assert_eq!(checks::pulling("orders", &busy, Some(256)).state, State::Ok);
    assert_eq!(checks::pulling("orders", &[], Some(256)).state, State::Skipped);
}

#[test]
fn a_consumer_with_everything_in_hand_is_stuck() {
    let full = Load { pending: 7, ack_pending: 256, waiting: 1, ..Load::default() };
    assert_eq!(checks::pulling("orders", &[full, full], Some(256)).state, State::Failed);
    assert_eq!(checks::pulling("orders", &[full, Load { ack_pending: 200, ..full }], Some(256)).state, State::Ok);
}

#[test]
fn a_service_is_as_well_as_its_replicas() {
    let well = status(true, &json!([{ "name": "database", "ok": true }]));
    let shaky = status(true, &json!([{ "name": "broker", "ok": false, "detail": "no answer" }]));
    let down = status(false, &json!([{ "name": "database", "ok": false, "detail": "refused" }]));
    let of = |answers: &[&Status]| {
        let answers: Vec<Status> = answers.iter().map(|answer| (*answer).clone()).collect();
        let check = checks::replicas("orders", &answers);
        (check.state, check.detail)
    };
    assert_eq!(of(&[&well, &well]), (State::Ok, "2 of 2 replicas are ready".into()));
    assert_eq!(of(&[&well, &shaky]).0, State::Warning);
    assert_eq!(of(&[&well, &down]), (State::Failed, "1 of 2 replicas are ready; database: refused".into()));
    assert_eq!(of(&[]), (State::Failed, "nobody answers".into()));
}

#[test]
fn an_outbox_fails_by_age_or_by_giving_up() {
    assert_eq!(checks::outbox(&outbox(0, 0.0, 0)).state, State::Ok);
    assert_eq!(checks::outbox(&outbox(900, 2.0, 0)).state, State::Ok);
    assert_eq!(checks::outbox(&outbox(1, 31.0, 0)).state, State::Failed);
    assert_eq!(checks::outbox(&outbox(0, 0.0, 1)).state, State::Failed);
}

#[test]
fn findings_name_the_remedy() {
    let checks = vec![
        Check::ok("broker", "connected to nats://nats:4222"),
        Check::failed("stream EVT", "missing", "run `meshctl streams apply`"),
    ];
    let findings = Findings { healthy: false, checks };
    let expected = "\
ok       broker: connected to nats://nats:4222
FAILED   stream EVT: missing
         remedy: run `meshctl streams apply`
1 check failed";
    assert_eq!(findings.to_string(), expected);
}
