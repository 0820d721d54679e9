use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::permissions::filters;

fn declared() -> Declaration {
    Declaration::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nats")).unwrap()
}

fn config(value: &Value) -> Config {
    value.as_object().unwrap().clone()
}

/// The declaration as a server reports it: its own notes added, defaults spelled out, filters in another order.
fn as_reported() -> Live {
    let declaration = declared();
    let notes = json!({ "_nats.level": "5", "_nats.req.level": "2", "_nats.ver": "2.15.1" });
    let mut stream = declaration.stream;
    stream.insert("metadata".into(), notes.clone());
    for (field, value) in [("sealed", json!(false)), ("consumer_limits", json!({})), ("mirror_direct", json!(false))] {
        stream.insert(field.into(), value);
    }
    let mut consumers = declaration.consumers;
    for consumer in consumers.values_mut() {
        consumer.insert("metadata".into(), notes.clone());
        consumer["filter_subjects"].as_array_mut().unwrap().reverse();
    }
    let mut buckets = declaration.buckets;
    for bucket in buckets.values_mut() {
        bucket.insert("metadata".into(), notes.clone());
        bucket.insert("consumer_limits".into(), json!({}));
    }
    Live { stream: Some(stream), side_streams: declaration.side_streams, consumers, buckets }
}

fn verdict(kind: AssetKind, field: &str, live: &Value, declared: &Value) -> &'static str {
    match rules::judge(kind, field, live, declared) {
        Verdict::Safe => "safe",
        Verdict::Note { .. } => "note",
        Verdict::Refused { .. } => "refused",
    }
}

#[test]
fn the_declared_stream_is_the_one_of_the_design() {
    const DAY: u64 = 24 * 60 * 60 * 1_000_000_000;
    let stream = declared().stream;
    let expected = json!({
        "name": "EVT", "subjects": ["evt.>"], "storage": "file", "retention": "limits", "discard": "new",
        "max_age": 14 * DAY, "duplicate_window": 120_000_000_000_u64, "allow_atomic": true, "deny_purge": true,
        "num_replicas": 1,
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(stream.get(field), Some(value), "{field}");
    }
}

/// Old news makes room for new, within a week and a size that nobody notices; no fact is among it.
#[test]
fn operational_events_are_kept_apart_from_facts() {
    const DAY: u64 = 24 * 60 * 60 * 1_000_000_000;
    let declaration = declared();
    let ops = &declaration.side_streams["OPS"];
    let expected = json!({
        "subjects": ["mesh.ops.*.events"], "storage": "file", "retention": "limits", "discard": "old", "max_age": 7 * DAY,
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(ops.get(field), Some(value), "{field}");
    }
    assert!(ops["max_bytes"].as_u64().unwrap() <= 100 * 1024 * 1024);
    // Whoever may say an event has somebody to keep it.
    for entry in events::catalogue::services().unwrap() {
        let users = crate::permissions::users(std::slice::from_ref(&entry), "EVT", &[]).users;
        assert!(users[0].permissions.publish.allow.contains(&format!("mesh.ops.{}.events", entry.service)));
    }
}

#[test]
fn each_service_hears_what_its_catalogue_entry_says() {
    let consumers = declared().consumers;
    let services = events::catalogue::services().unwrap();
    let reacting: Vec<_> = services.iter().filter(|entry| !entry.reactions.is_empty()).collect();
    assert_eq!(consumers.len(), reacting.len());
    for entry in reacting {
        let consumer = &consumers[&entry.service];
        assert_eq!(consumer["filter_subjects"], json!(filters(entry)), "{}", entry.service);
        let fixed = ["ack_policy", "ack_wait", "max_deliver", "max_ack_pending", "deliver_policy"];
        let settings = json!(fixed.map(|field| &consumer[field]));
        assert_eq!(settings, json!(["explicit", 30_000_000_000_u64, -1, 1_000, "all"]), "{}", entry.service);
    }
}

#[test]
fn what_a_server_adds_by_itself_is_no_drift() {
    let plan = Plan::new(&declared(), &as_reported());
    assert!(plan.is_empty(), "{plan}");
}

#[test]
fn an_empty_server_gets_everything() {
    let plan = Plan::new(&declared(), &Live::default());
    let expected = "\
stream EVT: create
stream OPS: create
bucket dead_notifications: create
bucket inbox_notifications: create
bucket recipients_notifications: create
consumer inventory: create
consumer notifications: create
consumer orders: create
consumer payments: create
";
    assert_eq!(plan.to_string(), expected);
    assert!(plan.changes_anything() && plan.refused().next().is_none());
}

#[test]
fn drift_is_told_field_by_field() {
    let mut live = as_reported();
    live.stream.as_mut().unwrap().insert("discard".into(), json!("old"));
    let payments = live.consumers.get_mut("payments").unwrap();
    payments.insert("max_ack_pending".into(), json!(64));
    payments.insert("headers_only".into(), json!(true));
    live.consumers.insert("reports".into(), config(&json!({ "durable_name": "reports" })));
    let plan = Plan::new(&declared(), &live);
    let expected = "\
stream EVT: update
  discard: \"old\" -> \"new\"
    refused: a full stream would delete facts instead of refusing new ones, or the other way round
stream OPS: as declared
bucket dead_notifications: as declared
bucket inbox_notifications: as declared
bucket recipients_notifications: as declared
consumer inventory: as declared
consumer notifications: as declared
consumer orders: as declared
consumer payments: update
  headers_only: true -> null
  max_ack_pending: 64 -> 1000
consumer reports: not declared; left alone
";
    assert_eq!(plan.to_string(), expected);
    assert_eq!(plan.refused().count(), 1);
}

#[test]
fn a_consumer_that_nobody_declared_is_drift_and_nothing_to_do() {
    let mut live = as_reported();
    live.consumers.insert("reports".into(), config(&json!({ "durable_name": "reports" })));
    let plan = Plan::new(&declared(), &live);
    assert!(!plan.is_empty() && !plan.changes_anything());
    assert_eq!(plan.unknown_consumers, ["reports"]);
}

#[test]
fn one_filter_and_a_list_of_one_are_the_same() {
    let mut declaration = declared();
    let mut live = as_reported();
    let filter = json!("evt.orders.order_created.v1.*");
    declaration.consumers.get_mut("payments").unwrap().insert("filter_subjects".into(), json!([filter]));
    let reported = live.consumers.get_mut("payments").unwrap();
    reported.remove("filter_subjects");
    reported.insert("filter_subject".into(), filter);
    let plan = Plan::new(&declaration, &live);
    assert!(plan.is_empty(), "{plan}");
}

#[test]
fn a_stream_change_that_loses_facts_is_refused() {
    let stream = |field: &str, live: Value, declared: Value| verdict(AssetKind::Stream, field, &live, &declared);
    assert_eq!(stream("subjects", json!(["evt.>", "old.>"]), json!(["evt.>"])), "refused");
    assert_eq!(stream("subjects", json!(["evt.>"]), json!(["evt.>", "new.>"])), "safe");
    assert_eq!(stream("retention", json!("limits"), json!("interest")), "refused");
    assert_eq!(stream("storage", json!("file"), json!("memory")), "refused");
    assert_eq!(stream("discard", json!("new"), json!("old")), "refused");
    assert_eq!(stream("max_age", json!(14), json!(7)), "refused");
    assert_eq!(stream("max_age", json!(7), json!(14)), "safe");
    assert_eq!(stream("max_age", json!(14), json!(0)), "safe");
    assert_eq!(stream("max_bytes", json!(-1), json!(1_000)), "refused");
    assert_eq!(stream("max_bytes", json!(1_000), json!(-1)), "safe");
    assert_eq!(stream("max_msgs_per_subject", json!(-1), json!(1)), "refused");
    assert_eq!(stream("deny_purge", json!(true), json!(false)), "refused");
    assert_eq!(stream("deny_purge", json!(false), json!(true)), "safe");
    assert_eq!(stream("allow_msg_ttl", Value::Null, json!(true)), "refused");
    assert_eq!(stream("num_replicas", json!(1), json!(3)), "safe");
    assert_eq!(stream("duplicate_window", json!(1), json!(2)), "safe");
}

#[test]
fn a_consumer_change_that_loses_a_position_is_refused_and_one_that_skips_facts_is_noted() {
    let consumer = |field: &str, live: Value, declared: Value| verdict(AssetKind::Consumer, field, &live, &declared);
    assert_eq!(consumer("deliver_policy", json!("all"), json!("new")), "refused");
    assert_eq!(consumer("ack_policy", json!("explicit"), json!("none")), "refused");
    assert_eq!(consumer("inactive_threshold", Value::Null, json!(5)), "refused");
    assert_eq!(consumer("filter_subjects", json!(["a"]), json!(["a", "b"])), "note");
    assert_eq!(consumer("filter_subjects", json!(["a", "b"]), json!(["a"])), "note");
    assert_eq!(consumer("max_deliver", json!(-1), json!(5)), "note");
    assert_eq!(consumer("max_deliver", json!(5), json!(-1)), "safe");
    assert_eq!(consumer("ack_wait", json!(1), json!(2)), "safe");
}

#[test]
fn a_bucket_may_forget_later_but_not_earlier() {
    let (shorter, longer) = (json!(1), json!(2));
    assert_eq!(verdict(AssetKind::Bucket, "max_age", &longer, &shorter), "refused");
    assert_eq!(verdict(AssetKind::Bucket, "max_age", &Value::Null, &shorter), "refused");
    assert_eq!(verdict(AssetKind::Bucket, "max_age", &shorter, &longer), "safe");
    assert_eq!(verdict(AssetKind::Bucket, "allow_msg_ttl", &json!(false), &json!(true)), "safe");
    assert_eq!(verdict(AssetKind::Bucket, "discard", &json!("new"), &json!("old")), "refused");
    assert_eq!(verdict(AssetKind::Bucket, "storage", &json!("file"), &json!("memory")), "refused");
}

#[test]
fn an_inbox_remembers_longer_than_a_fact_may_come_again() {
    let declaration = declared();
    let age = |config: &Config| config.get("max_age").and_then(Value::as_u64).unwrap_or_default();
    for (name, bucket) in &declaration.buckets {
        match name.split('_').next() {
            Some("inbox") => assert!(age(bucket) >= 2 * age(&declaration.stream), "{name}"),
            Some("dead") => assert_eq!(age(bucket), 0, "{name}: nothing is dropped"),
            _ => {}
        }
        assert_eq!(bucket.get("discard"), Some(&json!("new")), "{name}: a full bucket refuses instead of forgetting");
    }
}
