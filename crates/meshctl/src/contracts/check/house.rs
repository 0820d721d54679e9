//! The rules of this mesh over the schema of one fact: exact numbers, open sets, words for readers without our code.

use serde_json::Value;

use crate::contracts::folder::SchemaFile;
use crate::graph::Finding;

/// Everything that a schema may be built of. `default` would give meaning to what is absent, `additionalProperties` would
/// close what has to stay open, `enum` would close a set of codes.
const KEYWORDS: [&str; 16] = [
    "$id",
    "$schema",
    "anyOf",
    "const",
    "description",
    "format",
    "items",
    "maximum",
    "minItems",
    "minimum",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
    "x-event",
];

/// Fewer letters than this describe nothing.
const WORDS_MIN: usize = 4;

pub(super) fn check(file: &SchemaFile) -> Vec<Finding> {
    let mut problems = Vec::new();
    walk("body", &file.schema, &mut problems);
    problems.into_iter().map(|problem| Finding::error("house-rule", &file.name, problem)).collect()
}

fn walk(path: &str, schema: &Value, problems: &mut Vec<String>) {
    let Some(members) = schema.as_object() else {
        return problems.push(format!("{path} is no schema"));
    };
    for keyword in members.keys().filter(|keyword| !KEYWORDS.contains(&keyword.as_str())) {
        problems.push(format!("{path}: `{keyword}` is no keyword that facts may use"));
    }
    if schema["description"].as_str().is_none_or(|words| words.chars().count() < WORDS_MIN) {
        problems.push(format!("{path} is not described"));
    }
    match (schema["anyOf"].as_array(), schema["type"].as_str()) {
        (Some(branches), _) => codes(path, branches, problems),
        (None, Some("integer")) => bounds(path, schema, problems),
        (None, Some("number")) => problems.push(format!("{path} is a float: amounts and counts are integers")),
        (None, Some("string")) if schema["format"] != "uuid" && !schema["pattern"].is_string() => {
            problems.push(format!("{path} takes any text: it needs a pattern, or is an open set of codes"));
        }
        (None, Some(_)) => {}
        (None, None) => problems.push(format!("{path} has no single type")),
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{name}"), member, problems);
    }
    if let Some(items) = schema.get("items") {
        walk(&format!("{path}[]"), items, problems);
    }
}

/// JavaScript and others count exactly up to 2^53 - 1.
fn bounds(path: &str, schema: &Value, problems: &mut Vec<String>) {
    for bound in ["minimum", "maximum"] {
        match schema[bound].as_i64() {
            None => problems.push(format!("{path} has no {bound}")),
            Some(value) if value.unsigned_abs() > envelope::INTEGER_MAX.unsigned_abs() => {
                problems.push(format!("{path}: {bound} {value} is more than every reader can count"));
            }
            Some(_) => {}
        }
    }
}

fn codes(path: &str, branches: &[Value], problems: &mut Vec<String>) {
    let Some((open, codes)) = branches.split_last() else {
        return problems.push(format!("{path} has no branches"));
    };
    if open["type"] != "string" || open.get("const").is_some() || open.get("pattern").is_some() {
        problems.push(format!("{path} is closed: its last branch has to take any text"));
    }
    for code in codes {
        if !code["const"].as_str().is_some_and(envelope::is_token) {
            problems.push(format!("{path}: {} is no code", code["const"]));
        }
    }
}
