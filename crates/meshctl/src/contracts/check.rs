//! The gate: whether the contracts of some folders may be released. Decides from what was read, and reads nothing more.

mod code;
mod house;
mod samples;

use std::collections::BTreeSet;

use serde_json::Value;

pub use code::check as code;

use super::compatible::{problems, unmet};
use super::folder::{ContractFolder, SchemaFile};
use crate::catalogue::Catalogue;
use crate::graph::{Finding, check as graph};

/// Where a need names the headers that are read.
const HEADERS: &str = "x-headers";

/// Everything that is wrong with the folders, looked at together.
pub fn all(folders: &[ContractFolder]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in folders {
        findings.extend(released(folder));
        findings.extend(versions(folder));
        findings.extend(folder.schemas.iter().flat_map(house::check));
        findings.extend(samples::check(folder));
        findings.extend(declared(folder));
    }
    findings.extend(needed(folders));
    let together = Catalogue {
        services: folders.iter().flat_map(|folder| folder.catalogue.services.clone()).collect(),
        flows: folders.iter().flat_map(|folder| folder.catalogue.flows.clone()).collect(),
    };
    if !together.services.is_empty() {
        findings.extend(graph::all(&together));
    }
    findings
}

/// Released files are as they were.
fn released(folder: &ContractFolder) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, hash) in &folder.locked {
        match folder.hashes.get(name) {
            None => findings.push(Finding::error("released-removed", name, "it was released and is gone")),
            Some(now) if now != hash => {
                findings.push(Finding::error("released-edited", name, "it was released and is not what it was"));
            }
            Some(_) => {}
        }
    }
    for name in folder.hashes.keys().filter(|name| !folder.locked.contains_key(*name)) {
        let detail = "it is not in lock.json; `meshctl contracts schemas --lock` enters it";
        findings.push(Finding::error("not-locked", name, detail));
    }
    for name in &folder.strays {
        let detail = "it is neither v<major>/r<revision>.schema.json nor v<major>/samples/<name>.json of a fact";
        findings.push(Finding::error("misplaced", name, detail));
    }
    findings
}

/// Revisions follow each other without a gap, say who they are, and are compatible with each other.
fn versions(folder: &ContractFolder) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (fact, major) in folder.facts() {
        let revisions = folder.revisions(fact, major);
        for (expected, file) in (1..).zip(&revisions) {
            if file.revision != expected {
                let detail = format!("revision {expected} is missing before it");
                findings.push(Finding::error("revision-gap", &file.name, detail));
                break;
            }
        }
        findings.extend(revisions.iter().flat_map(|file| identity(file)));
        let Some((newest, earlier)) = revisions.split_last() else { continue };
        for file in earlier {
            for problem in problems(&file.schema, &newest.schema) {
                let detail = format!("{problem} since revision {}; that is a new major", file.revision);
                findings.push(Finding::error("incompatible", &newest.name, detail));
            }
        }
    }
    findings
}

fn identity(file: &SchemaFile) -> Vec<Finding> {
    let id = format!("urn:mesh:schema:{}:{}:{}", file.fact, file.major, file.revision);
    let event_type = format!("{}.v{}", file.fact, file.major);
    let publisher = file.fact.split('.').next().unwrap_or_default();
    let expected = [
        ("$id", &file.schema["$id"], id.as_str()),
        ("x-event.type", &file.schema["x-event"]["type"], event_type.as_str()),
        ("x-event.publisher", &file.schema["x-event"]["publisher"], publisher),
    ];
    let mut findings: Vec<Finding> = expected
        .into_iter()
        .filter(|(_, found, expected)| *found != expected)
        .map(|(name, found, expected)| {
            Finding::error("identity", &file.name, format!("{name} is {found}, not {expected:?}"))
        })
        .collect();
    let key = file.schema["x-event"]["key"].as_str().unwrap_or_default();
    let required = file.schema["required"].as_array().is_some_and(|names| names.iter().any(|name| name == key));
    if !required {
        let detail = format!("the key {key:?} is no required member, so that order cannot be kept by it");
        findings.push(Finding::error("identity", &file.name, detail));
    }
    findings
}

/// The catalogue declares what has schemas, at its newest revision, and nothing else.
fn declared(folder: &ContractFolder) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut named = BTreeSet::new();
    for fact in folder.catalogue.services.iter().flat_map(|entry| &entry.facts) {
        let (name, major) = (fact.event_type.fact(), fact.event_type.major);
        match folder.newest(&name, major) {
            None => findings.push(Finding::error(
                "no-schema",
                fact.event_type.to_string(),
                "it is declared, and has no schema",
            )),
            Some(newest) if newest.revision != fact.revision => {
                let detail =
                    format!("the catalogue says revision {}, the newest is {}", fact.revision, newest.revision);
                findings.push(Finding::error("revision", fact.event_type.to_string(), detail));
            }
            Some(_) => {}
        }
        named.insert((name, major));
    }
    if !folder.catalogue.services.is_empty() {
        let newest =
            |fact: &str, major: u16| folder.facts().iter().all(|(other, later)| *other != fact || *later <= major);
        for (fact, major) in folder.facts() {
            if newest(fact, major) && !named.contains(&(fact.to_owned(), major)) {
                let subject = format!("{fact}.v{major}");
                findings.push(Finding::error("undeclared", subject, "it has a schema, and no service declares it"));
            }
        }
    }
    findings
}

/// What services read is promised by who publishes it, and is there in every sample.
fn needed(folders: &[ContractFolder]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in folders {
        for (service, event_type, need) in &folder.needs {
            let subject = format!("{service} of {event_type}");
            let parsed =
                event_type.rsplit_once(".v").and_then(|(fact, major)| Some((fact, major.parse::<u16>().ok()?)));
            let Some((fact, major)) = parsed else {
                findings.push(Finding::error("need", &subject, "it is no <domain>.<fact>.v<major>"));
                continue;
            };
            let publisher = folders.iter().find_map(|other| other.newest(fact, major).map(|schema| (other, schema)));
            let Some((publisher, schema)) = publisher else {
                let detail = "the schema is not in any of these folders: name its folder with --dir as well";
                findings.push(Finding::error("need", &subject, detail));
                continue;
            };
            findings.extend(
                unmet("body", need, &schema.schema).into_iter().map(|why| Finding::error("need", &subject, why)),
            );
            findings.extend(samples::satisfy(publisher, fact, major, need, &subject));
            findings.extend(headers(need, &subject));
        }
        findings.extend(unstated(folder));
    }
    findings
}

/// Headers that a reader relies on are among those that every fact carries.
fn headers(need: &Value, subject: &str) -> Vec<Finding> {
    let always = events::asyncapi::required_headers();
    let read = need[HEADERS].as_array().into_iter().flatten().filter_map(Value::as_str);
    read.filter(|header| !always.contains(header))
        .map(|header| {
            Finding::error("need", subject, format!("it relies on the header {header}, which not every fact carries"))
        })
        .collect()
}

/// Reactions that do not say what they read.
fn unstated(folder: &ContractFolder) -> Vec<Finding> {
    let mut findings = Vec::new();
    for entry in &folder.catalogue.services {
        for reaction in &entry.reactions {
            for major in &reaction.majors {
                let event_type = format!("{}.v{major}", reaction.on);
                if !entry.needs.contains_key(&event_type) {
                    let subject = format!("{}/{}", entry.service, reaction.subscriber);
                    let detail = format!("it does not say under `needs` what it reads of {event_type}");
                    findings.push(Finding::warning("need-unstated", subject, detail));
                }
            }
        }
    }
    findings
}
