//! What services read of others' facts, against what is published.

use std::{collections::BTreeSet, path::Path};

use events::{all, asyncapi, catalogue};
use serde_json::Value;

use crate::{
    released::{files, read},
    samples::{self, validator},
};

/// Service, type, schema.
fn needs() -> Vec<(String, String, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = catalogue::services().expect("readable entries").into_iter();
    entries
        .flat_map(|entry| entry.needs.into_iter().map(move |(name, path)| (entry.service.clone(), name, path)))
        .map(|(service, name, path)| (service, name, serde_json::from_slice(&read(&root.join(path))).expect("JSON")))
        .collect()
}

#[test]
fn every_fact_that_is_heard_has_its_needs_and_no_file_is_left_over() {
    let needs: BTreeSet<_> = needs().into_iter().map(|(service, name, _)| format!("{service}/{name}")).collect();
    let heard: BTreeSet<_> = catalogue::services()
        .expect("readable entries")
        .iter()
        .flat_map(|entry| entry.reactions.iter().map(|r| format!("{}/{}.v{}", entry.service, r.on, r.majors[0])))
        .collect();
    assert_eq!(needs, heard);
    assert_eq!(files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("needs")).len(), needs.len());
}

/// Everything that is read is declared, required and of that type: what the publisher promises is enough for the reader.
#[test]
fn publishers_promise_what_is_needed() {
    fn covered(path: &str, need: &Value, promise: &Value) {
        let string_of_any_code = need["type"] == "string" && promise["anyOf"].is_array();
        assert!(
            need["type"] == promise["type"] || string_of_any_code,
            "{path}: {} is not {}",
            promise["type"],
            need["type"]
        );
        for name in need["required"].as_array().into_iter().flatten() {
            assert!(promise["required"].as_array().is_some_and(|promised| promised.contains(name)), "{path}.{name}");
        }
        for (name, member) in need["properties"].as_object().into_iter().flatten() {
            covered(&format!("{path}.{name}"), member, &promise["properties"][name]);
        }
        if let Some(items) = need.get("items") {
            covered(&format!("{path}[]"), items, &promise["items"]);
        }
    }
    for (service, name, need) in needs() {
        let fact = all().into_iter().find(|fact| fact.event_type.to_string() == name);
        let fact = fact.unwrap_or_else(|| panic!("{service} needs {name}, which nobody publishes"));
        covered(&format!("{service} of {name}"), &need, &fact.schema);
    }
}

#[test]
fn every_sample_satisfies_every_reader() {
    let samples = samples::current();
    for (service, name, need) in needs() {
        let validator = validator(&need);
        let of_fact: Vec<_> = samples.iter().filter(|(fact, ..)| fact.event_type.to_string() == name).collect();
        assert!(!of_fact.is_empty(), "{name}");
        for (_, path, body) in of_fact {
            assert!(validator.is_valid(body), "{service}: {}", path.display());
        }
    }
}

#[test]
fn needed_headers_are_required_of_publishers() {
    let document = asyncapi::document().expect("a readable catalogue");
    let required = document["components"]["schemas"]["headers"]["required"].as_array().expect("a list").clone();
    for (service, name, need) in needs() {
        let headers = need["x-headers"].as_array().unwrap_or_else(|| panic!("{service}: {name} has no x-headers"));
        assert!(headers.iter().all(|header| required.contains(header)), "{service}: {name}: {headers:?}");
    }
}
