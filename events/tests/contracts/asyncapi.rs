//! The AsyncAPI document: committed as generated, whole, and true to the envelope.

use std::{collections::BTreeSet, fs, path::Path};

use events::asyncapi;
use serde_json::{Value, json};

use crate::{samples, samples::validator};

fn document() -> Value {
    asyncapi::document().expect("a readable catalogue")
}

/// Generated from what is released, so `BLESS=1` may write it anew.
#[test]
fn the_committed_document_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("asyncapi.json");
    let text = format!("{}\n", serde_json::to_string_pretty(&document()).expect("JSON"));
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &text).expect("a writable folder");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "asyncapi.json is not what the contracts generate; BLESS=1 writes it");
}

#[test]
fn every_reference_resolves() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() >= 9 * 4, "channels, messages and operations refer to each other");
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("within the document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

/// What the mesh writes satisfies the header schema that others read, with what the relay adds.
#[test]
fn the_header_schema_describes_what_is_written() {
    let schema = document()["components"]["schemas"]["headers"].take();
    let declared: BTreeSet<&str> =
        schema["properties"].as_object().expect("members").keys().map(String::as_str).collect();
    for name in envelope::headers::ENVELOPE {
        assert!(declared.contains(name), "{name} is not in the document");
    }
    let event_type = envelope::EventType::of::<events::OrderConfirmed>();
    let raw = samples::message(&event_type, "0198d2f0-1c2b-7000-8000-0000000000aa", b"{}");
    let mut written: Value =
        raw.headers.into_iter().map(|(name, value)| (name, json!(value))).collect::<serde_json::Map<_, _>>().into();
    written["Nats-Msg-Id"] = written["ce-id"].clone();
    written["Nats-Expected-Stream"] = json!("EVT");
    let validator = validator(&schema);
    let errors: Vec<_> = validator.iter_errors(&written).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    // And each required one is missed.
    for name in schema["required"].as_array().expect("a list").iter().filter_map(Value::as_str) {
        let mut without = written.clone();
        without.as_object_mut().expect("an object").remove(name).unwrap_or_else(|| panic!("{name} is not written"));
        assert!(!validator.is_valid(&without), "{name}");
    }
}

/// The numbers in the text are those of the code.
#[test]
fn the_text_states_the_limits() {
    let text = document()["info"]["description"].take();
    let text = text.as_str().expect("a description");
    for number in [
        envelope::BODY_BYTES_MAX.to_string(),
        envelope::HEADERS_BYTES_MAX.to_string(),
        format!("modulo {}", envelope::BUCKETS),
        format!("{} levels", envelope::DEPTH_MAX),
        0x811c_9dc5_u32.to_string(),
        0x0100_0193_u32.to_string(),
    ] {
        assert!(text.contains(&number), "{number}");
    }
}
