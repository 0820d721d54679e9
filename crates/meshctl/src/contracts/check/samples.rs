//! Samples: bodies as a publisher sends them, against every schema and reader that has to take them.

use serde_json::Value;

use crate::contracts::folder::{ContractFolder, SampleFile};
use crate::graph::Finding;

/// Samples are publishable, and satisfy the newest and the first revision of their major: last month's reader reads
/// today's facts.
pub(super) fn check(folder: &ContractFolder) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (fact, major) in folder.facts() {
        let samples = of(folder, fact, major);
        if samples.is_empty() {
            findings.push(Finding::error("no-sample", format!("{fact}.v{major}"), "nobody can try a reader on it"));
        }
        let revisions = folder.revisions(fact, major);
        let ends = [revisions.first(), revisions.last().filter(|_| revisions.len() > 1)];
        for file in ends.into_iter().flatten() {
            findings.extend(satisfied(&samples, &file.schema, "sample-invalid", &file.name));
        }
        findings.extend(samples.iter().filter_map(|sample| publishable(sample)));
    }
    for sample in &folder.samples {
        if folder.newest(&sample.fact, sample.major).is_none() {
            findings.push(Finding::error("misplaced", &sample.name, "there is no schema beside it"));
        }
    }
    findings
}

/// Every sample of a fact is what a reader needs.
pub(super) fn satisfy(folder: &ContractFolder, fact: &str, major: u16, need: &Value, subject: &str) -> Vec<Finding> {
    satisfied(&of(folder, fact, major), need, "need-sample", subject)
}

fn of<'a>(folder: &'a ContractFolder, fact: &str, major: u16) -> Vec<&'a SampleFile> {
    folder.samples.iter().filter(|sample| sample.fact == fact && sample.major == major).collect()
}

fn satisfied(samples: &[&SampleFile], schema: &Value, rule: &'static str, schema_name: &str) -> Vec<Finding> {
    let validator = match jsonschema::options().should_validate_formats(true).build(schema) {
        Ok(validator) => validator,
        Err(error) => return vec![Finding::error("no-schema", schema_name, format!("it is no JSON Schema: {error}"))],
    };
    let mut findings = Vec::new();
    for sample in samples {
        // What is no JSON is found as not publishable.
        let Ok(body) = serde_json::from_slice::<Value>(&sample.body) else { continue };
        for error in validator.iter_errors(&body) {
            let detail = format!("{error} at {:?}, by {schema_name}", error.instance_path().to_string());
            findings.push(Finding::error(rule, &sample.name, detail));
        }
    }
    findings
}

/// A body that the outbox would take: inside the JSON profile, without nulls.
fn publishable(sample: &SampleFile) -> Option<Finding> {
    if let Err(error) = envelope::profile::check(&sample.body) {
        return Some(Finding::error("sample-unpublishable", &sample.name, error.to_string()));
    }
    let body: Value = serde_json::from_slice(&sample.body).ok()?;
    has_null(&body).then(|| Finding::error("sample-unpublishable", &sample.name, "it has a null: leave the member out"))
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}
