//! Who says what and who reacts to what, read from the committed files in `catalogue/`.
//!
//! The files are the form that services in other languages use as well; `README.md` describes them.

use std::collections::BTreeMap;

use envelope::EventType;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::OutcomeKind;

const FILES: [(&str, &str); 4] = [
    ("orders", include_str!("../catalogue/orders.json")),
    ("payments", include_str!("../catalogue/payments.json")),
    ("inventory", include_str!("../catalogue/inventory.json")),
    ("notifications", include_str!("../catalogue/notifications.json")),
];

/// One service's entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceEntry {
    /// The service, which is also the domain of its facts and the name of its durable consumer.
    pub service: String,
    /// What it may publish.
    pub facts: Vec<FactEntry>,
    /// What it publishes on its own account: requests, timers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// What it publishes because it heard something.
    pub reactions: Vec<Reaction>,
    /// What it reads of the facts that it hears: type to the path of a schema with only those members.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub needs: BTreeMap<String, String>,
}

/// A fact that a service may publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactEntry {
    /// Its name on the wire, with the major.
    #[serde(rename = "type", serialize_with = "event_type_out", deserialize_with = "event_type_in")]
    pub event_type: EventType,
    /// The newest revision.
    pub revision: u16,
    /// The parts that it plays.
    pub outcome: Vec<OutcomeKind>,
    /// For an effect: the fact that undoes it, `<domain>.<fact>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<String>,
}

/// Something that makes a service publish without having heard a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// The endpoint or timer, as in `ce-emitter`.
    pub name: String,
    /// What may be published, `<domain>.<fact>`.
    pub emits: Vec<String>,
}

/// A subscriber.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reaction {
    /// Its durable name.
    pub subscriber: String,
    /// The fact that it hears, `<domain>.<fact>`.
    pub on: String,
    /// The majors that it reads from the wire.
    pub majors: Vec<u16>,
    /// What it may publish, `<domain>.<fact>`.
    pub emits: Vec<String>,
    /// How often it publishes for one key at most. Declared by a reaction that is part of a cycle: it is what ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_per_key: Option<u32>,
}

/// Why there is no entry.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// No file for this service.
    #[error("the catalogue has no service named {0:?}")]
    UnknownService(String),
    /// The file is not an entry.
    #[error("the catalogue entry of {service} cannot be read")]
    Malformed {
        /// Whose file.
        service: String,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// The services that have an entry.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The entry of one service.
///
/// # Errors
/// When there is none, or its file is not an entry.
pub fn service(name: &str) -> Result<ServiceEntry, CatalogueError> {
    let file = FILES.iter().find(|(service, _)| *service == name);
    let (_, text) = file.ok_or_else(|| CatalogueError::UnknownService(name.to_owned()))?;
    parse(name, text)
}

/// All entries.
///
/// # Errors
/// When a file is not an entry.
pub fn services() -> Result<Vec<ServiceEntry>, CatalogueError> {
    FILES.iter().map(|(name, text)| parse(name, text)).collect()
}

fn parse(service: &str, text: &str) -> Result<ServiceEntry, CatalogueError> {
    serde_json::from_str(text).map_err(|source| CatalogueError::Malformed { service: service.to_owned(), source })
}

fn event_type_out<S: Serializer>(event_type: &EventType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(event_type)
}

fn event_type_in<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EventType, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}
