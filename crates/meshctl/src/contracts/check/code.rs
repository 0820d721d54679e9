//! The files against the types that this program was built with. Only for the contracts of this repository.

use std::fs;
use std::path::Path;

use envelope::{DecodeError, EventType, RawMessage, Subject};
use events::FactDeclaration;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::catalogue::{json_files, read_json};
use crate::contracts::folder::{ContractFolder, SampleFile};
use crate::graph::Finding;

/// One message of the hostile corpus.
#[derive(Deserialize)]
struct Hostile {
    subject: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
    body_hex: Option<String>,
    verdict: String,
}

/// Schemas are those of the code, old samples are read by it, hostile messages meet their verdict, and what is generated is
/// as generated.
///
/// # Errors
/// When a file cannot be read.
pub fn check(folder: &ContractFolder) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for declared in events::all() {
        findings.extend(fresh(folder, &declared));
        findings.extend(samples(folder, &declared));
    }
    findings.extend(hostile(&folder.path.join("hostile"))?);
    let generated =
        [("asyncapi.json", events::asyncapi::document()?), ("flows.json", serde_json::to_value(events::flow::all())?)];
    for (name, value) in generated {
        if fs::read(folder.path.join(name)).ok().and_then(|text| serde_json::from_slice(&text).ok()) != Some(value) {
            findings.push(Finding::error(
                "stale",
                name,
                "it is not what the code generates; `cargo xtask schemas` writes it",
            ));
        }
    }
    Ok(findings)
}

fn fresh(folder: &ContractFolder, declared: &FactDeclaration) -> Option<Finding> {
    let event_type = &declared.event_type;
    let newest = folder.newest(&event_type.fact(), event_type.major);
    let same = newest.is_some_and(|file| file.revision == declared.revision && file.schema == declared.schema);
    let detail = "the newest schema is not the one of the code; `cargo xtask schemas` writes a new revision";
    (!same).then(|| Finding::error("stale", event_type.to_string(), detail))
}

/// Every body of every major that was ever released is read, and one of today's is written back as it was.
fn samples(folder: &ContractFolder, declared: &FactDeclaration) -> Vec<Finding> {
    let fact = declared.event_type.fact();
    let mut findings = Vec::new();
    for sample in folder.samples.iter().filter(|sample| sample.fact == fact) {
        match (declared.read)(&message(declared, sample)) {
            Err(error) => findings.push(Finding::error("sample-unread", &sample.name, error.to_string())),
            Ok(read) => {
                let today = sample.major == declared.event_type.major;
                if today && serde_json::from_slice::<Value>(&sample.body).ok() != Some(read) {
                    findings.push(Finding::error("sample-unread", &sample.name, "reading it loses something"));
                }
            }
        }
    }
    findings
}

/// A sample as it would arrive.
fn message(declared: &FactDeclaration, sample: &SampleFile) -> RawMessage {
    let event_type = EventType { major: sample.major, ..declared.event_type.clone() };
    let id = Uuid::from_u128(1).to_string();
    let headers = [
        ("ce-specversion", "1.0".to_owned()),
        ("ce-id", id.clone()),
        ("ce-source", format!("urn:mesh:{}", event_type.domain)),
        ("ce-type", event_type.to_string()),
        ("ce-time", "2026-01-31T09:30:00.123Z".to_owned()),
        ("ce-subject", id.clone()),
        ("ce-datacontenttype", "application/json".to_owned()),
        ("content-type", "application/json".to_owned()),
        ("ce-dataschema", format!("urn:mesh:schema:{}:{}:1", event_type.fact(), event_type.major)),
        ("ce-correlationid", id.clone()),
        ("ce-partitionkey", id.clone()),
        ("ce-sequence", format!("{:020}", 1)),
        ("ce-emitter", "contracts/check@0".to_owned()),
    ];
    RawMessage {
        // Samples have no subject of their own; one that cannot be made is found by the reader.
        subject: Subject::new(&event_type, &id).map(|subject| subject.as_str().to_owned()).unwrap_or_default(),
        headers: headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        body: sample.body.clone(),
    }
}

fn hostile(corpus: &Path) -> anyhow::Result<Vec<Finding>> {
    let reader = events::declare::<events::OrderCancelled>();
    let mut findings = Vec::new();
    for path in json_files(corpus)? {
        let case: Hostile = read_json(&path)?;
        let body = case.body.map_or_else(|| bytes(case.body_hex.as_deref().unwrap_or_default()), String::into_bytes);
        let read = (reader.read)(&RawMessage { subject: case.subject, headers: case.headers, body });
        let verdict = read.as_ref().map_or_else(DecodeError::reason, |_| "accepted");
        if verdict != case.verdict {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let detail = format!("the code says {verdict}, the corpus {}", case.verdict);
            findings.push(Finding::error("hostile", name, detail));
        }
    }
    Ok(findings)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().filter_map(|digit| u8::try_from(digit.to_digit(16)?).ok()).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
