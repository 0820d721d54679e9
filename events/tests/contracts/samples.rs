//! Golden bodies: every sample of every released major is valid, is read by today's code, and is written back unchanged.

use std::path::PathBuf;

use envelope::{EventType, Metadata, RawMessage, Subject};
use events::FactDeclaration;
use serde_json::Value;
use uuid::Uuid;

use crate::released::{files, folder, read};

/// A body as it would arrive.
pub(crate) fn message(event_type: &EventType, key: &str, body: &[u8]) -> RawMessage {
    let metadata = Metadata {
        id: Uuid::from_u128(1),
        source: format!("urn:mesh:{}", event_type.domain),
        event_type: event_type.clone(),
        time: "2026-01-31T09:30:00.123Z".parse().expect("an instant"),
        key: key.to_owned(),
        revision: 1,
        correlation_id: Uuid::from_u128(2),
        causation_id: None,
        sequence: 1,
        emitter: "samples/test@0".to_owned(),
        hops: 0,
        trace: None,
        occurrence_id: None,
        extensions: Vec::new(),
    };
    RawMessage {
        subject: Subject::new(event_type, key).expect("a subject").as_str().to_owned(),
        headers: metadata.to_headers().expect("headers"),
        body: body.to_vec(),
    }
}

/// A validator that also holds strings to their `format`.
pub(crate) fn validator(schema: &Value) -> jsonschema::Validator {
    jsonschema::options().should_validate_formats(true).build(schema).expect("a schema")
}

fn errors(schema: &Value, instance: &Value) -> Vec<String> {
    validator(schema).iter_errors(instance).map(|error| format!("{error} at {}", error.instance_path())).collect()
}

/// The samples of one major of a fact, with their bytes.
fn samples(declared: &FactDeclaration, major: u16) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = folder(declared).join(format!("v{major}")).join("samples");
    let found: Vec<_> = files(&folder).into_iter().map(|path| (path.clone(), read(&path))).collect();
    assert!(!found.is_empty(), "no samples in {}", folder.display());
    found
}

/// Every sample of the current majors.
pub(crate) fn current() -> Vec<(FactDeclaration, PathBuf, Value)> {
    let mut all = Vec::new();
    for declared in events::all() {
        for (path, body) in samples(&declared, declared.event_type.major) {
            all.push((declared.clone(), path, serde_json::from_slice(&body).expect("JSON")));
        }
    }
    all
}

#[test]
fn samples_satisfy_their_schema() {
    for (declared, path, body) in current() {
        assert_eq!(errors(&declared.schema, &body), Vec::<String>::new(), "{}", path.display());
    }
}

/// The newest samples satisfy the oldest schema of their major: last month's reader reads today's facts.
#[test]
fn samples_satisfy_the_first_revision() {
    for (declared, path, body) in current() {
        let first = folder(&declared).join(format!("v{}/r1.schema.json", declared.event_type.major));
        let schema: Value = serde_json::from_slice(&read(&first)).expect("JSON");
        assert_eq!(errors(&schema, &body), Vec::<String>::new(), "{}", path.display());
    }
}

#[test]
fn samples_of_every_major_are_read() {
    for declared in events::all() {
        for major in declared.lifts_from.iter().copied().chain([declared.event_type.major]) {
            let event_type = EventType { major, ..declared.event_type.clone() };
            for (path, body) in samples(&declared, major) {
                let raw = message(&event_type, "any-key", &body);
                (declared.read)(&raw).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            }
        }
    }
}

#[test]
fn samples_are_written_back_without_loss() {
    for (declared, path, body) in current() {
        let raw = message(&declared.event_type, "any-key", body.to_string().as_bytes());
        assert_eq!((declared.read)(&raw), Ok(body), "{}", path.display());
    }
}

/// Samples are bodies that a publisher could have sent: inside the profile, without nulls.
#[test]
fn samples_are_publishable() {
    fn has_null(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(items) => items.iter().any(has_null),
            Value::Object(members) => members.values().any(has_null),
            _ => false,
        }
    }
    for (_, path, body) in current() {
        assert_eq!(envelope::profile::check(&read(&path)), Ok(()), "{}", path.display());
        assert!(!has_null(&body), "{}", path.display());
    }
}

/// What the description of `total` promises.
#[test]
fn totals_are_the_sum_of_their_lines() {
    for (_, path, body) in current().into_iter().filter(|(declared, ..)| declared.event_type.name == "order_created") {
        let order: events::OrderCreated = serde_json::from_value(body).expect("an order");
        let sum = order
            .lines
            .iter()
            .map(|line| line.unit_price.checked_mul(line.quantity).expect("in range"))
            .reduce(|sum, amount| sum.checked_add(amount).expect("one currency"));
        assert_eq!(sum, Some(order.total), "{}", path.display());
    }
}

/// Every code of every open enum has a sample, so that each is seen by every test above.
#[test]
fn every_reason_has_a_sample() {
    for declared in events::all() {
        let Some(codes) = declared.schema["properties"]["reason"]["anyOf"].as_array() else { continue };
        let sampled: Vec<Value> = samples(&declared, declared.event_type.major)
            .iter()
            .map(|(_, body)| serde_json::from_slice::<Value>(body).expect("JSON")["reason"].clone())
            .collect();
        for code in codes.iter().filter_map(|branch| branch.get("const")) {
            assert!(sampled.contains(code), "{}: no sample with reason {code}", declared.event_type);
        }
    }
}
