//! Whether readers of one schema can read what is written by the other, both ways. Pure.
//!
//! Inside a major only two edits are allowed: an optional member, and a code of an open set. Everything else that says
//! something about the bytes must stay as it is, whether a tool would call it tighter or looser.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Keywords that say nothing about the bytes, or are compared by rules of their own.
const APART: [&str; 10] =
    ["$id", "$schema", "$comment", "title", "description", "examples", "properties", "required", "items", "anyOf"];

/// What of `x-event` is part of the contract.
const EVENT: [&str; 3] = ["type", "publisher", "key"];

/// What is not compatible between an earlier and a later revision, each with its path.
pub fn problems(earlier: &Value, later: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for name in EVENT {
        let of = |schema: &Value| schema["x-event"][name].clone();
        if of(earlier) != of(later) {
            found.push(format!("x-event.{name} was {} and is {}", of(earlier), of(later)));
        }
    }
    compare("body", earlier, later, &mut found);
    found
}

fn compare(path: &str, earlier: &Value, later: &Value, found: &mut Vec<String>) {
    let empty = Map::new();
    let (old, new) = (earlier.as_object().unwrap_or(&empty), later.as_object().unwrap_or(&empty));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names.into_iter().filter(|name| !APART.contains(&name.as_str()) && *name != "x-event") {
        let of = |schema: &Map<String, Value>| schema.get(name).map_or("absent".to_owned(), Value::to_string);
        if of(old) != of(new) {
            found.push(format!("{path}: {name} was {} and is {}", of(old), of(new)));
        }
    }
    members(path, old, new, found);
    match (old.get("items"), new.get("items")) {
        (Some(old), Some(new)) => compare(&format!("{path}[]"), old, new, found),
        (None, None) => {}
        _ => found.push(format!("{path}: items came or went")),
    }
    codes(path, old.get("anyOf"), new.get("anyOf"), found);
}

fn members(path: &str, old: &Map<String, Value>, new: &Map<String, Value>, found: &mut Vec<String>) {
    let properties = |schema: &Map<String, Value>| -> Map<String, Value> {
        schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let required = |schema: &Map<String, Value>, name: &str| {
        schema.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|one| one == name))
    };
    let (before, after) = (properties(old), properties(new));
    for (name, member) in &before {
        let Some(now) = after.get(name) else {
            found.push(format!("{path}.{name} was removed"));
            continue;
        };
        match (required(old, name), required(new, name)) {
            (true, false) => found.push(format!("{path}.{name} was required and is optional")),
            (false, true) => found.push(format!("{path}.{name} was optional and is required")),
            _ => {}
        }
        compare(&format!("{path}.{name}"), member, now, found);
    }
    for name in after.keys().filter(|name| !before.contains_key(*name) && required(new, name)) {
        found.push(format!("{path}.{name} was added and is required"));
    }
}

/// Branches: an open set may grow, anything else stays.
fn codes(path: &str, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<String>) {
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        (None, None) => return,
        _ => return found.push(format!("{path}: anyOf came or went")),
    };
    match (open_set(old), open_set(new)) {
        (Some(before), Some(after)) => {
            for gone in before.difference(&after) {
                found.push(format!("{path}: the code {gone:?} was removed"));
            }
        }
        _ if without_words(old) != without_words(new) => {
            found.push(format!("{path}: anyOf is no open set and changed"));
        }
        _ => {}
    }
}

/// The codes of a set whose last branch takes any text.
fn open_set(branches: &Value) -> Option<BTreeSet<&str>> {
    let (open, codes) = branches.as_array()?.split_last()?;
    let takes_any = open["type"] == "string" && open.get("const").is_none() && open.get("pattern").is_none();
    takes_any.then(|| codes.iter().map(|code| code["const"].as_str()).collect())?
}

fn without_words(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !matches!(name.as_str(), "description" | "title"));
            Value::Object(kept.map(|(name, member)| (name.clone(), without_words(member))).collect())
        }
        Value::Array(items) => items.iter().map(without_words).collect(),
        other => other.clone(),
    }
}

/// What a reader relies on and the publisher does not promise, each with its path.
pub fn unmet(path: &str, need: &Value, promise: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let any_code = need["type"] == "string" && promise["anyOf"].is_array();
    if need["type"] != promise["type"] && !any_code {
        found.push(format!("{path} is read as {} and is {}", need["type"], promise["type"]));
        return found;
    }
    for name in need["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !promise["required"].as_array().is_some_and(|names| names.iter().any(|promised| promised == name)) {
            found.push(format!("{path}.{name} is relied on and not promised"));
        }
    }
    for (name, member) in need["properties"].as_object().into_iter().flatten() {
        match promise["properties"].get(name) {
            Some(promised) => found.extend(unmet(&format!("{path}.{name}"), member, promised)),
            None => found.push(format!("{path}.{name} is read and does not exist")),
        }
    }
    if let Some(items) = need.get("items") {
        found.extend(unmet(&format!("{path}[]"), items, &promise["items"]));
    }
    found
}
