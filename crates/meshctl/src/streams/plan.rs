//! What would change on the server to make it what `nats/` declares. Pure.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::rules::{self, Verdict};
use crate::declaration::{Config, Declaration};

/// What is on the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Live {
    /// The configuration of the stream, if there is one.
    pub stream: Option<Config>,
    /// The configurations of the declared streams beside it, those that there are, by name.
    pub side_streams: BTreeMap<String, Config>,
    /// The configurations of its durable consumers by name.
    pub consumers: BTreeMap<String, Config>,
    /// The configurations of the declared buckets that are there, by name.
    pub buckets: BTreeMap<String, Config>,
}

/// The difference between the declaration and the server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The stream first, then those beside it, then the declared buckets and consumers by name.
    pub assets: Vec<AssetPlan>,
    /// Durable consumers that nobody declared. They are reported and left alone.
    pub unknown_consumers: Vec<String>,
}

/// What is to be done with one stream, bucket or consumer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AssetPlan {
    /// Stream, bucket or consumer.
    pub kind: AssetKind,
    /// Its name.
    pub name: String,
    /// What is to be done.
    pub action: Action,
    /// Field by field, for an update.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
}

/// What JetStream keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AssetKind {
    /// A log of facts.
    Stream,
    /// Entries by key, the last of each.
    Bucket,
    /// A durable position in the log.
    Consumer,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is as declared.
    None,
    /// It is missing.
    Create,
    /// It is there and differs.
    Update,
}

/// One field that differs. `null` stands for an absent one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldChange {
    /// Its name in the JetStream API.
    pub field: String,
    /// On the server.
    pub live: Value,
    /// In `nats/`.
    pub declared: Value,
    /// Whether it may be made.
    pub verdict: Verdict,
}

impl Plan {
    /// Compares.
    pub fn new(declaration: &Declaration, live: &Live) -> Self {
        let stream = asset(AssetKind::Stream, declaration.stream_name(), &declaration.stream, live.stream.as_ref());
        let beside = declaration
            .side_streams
            .iter()
            .map(|(name, declared)| asset(AssetKind::Stream, name, declared, live.side_streams.get(name)));
        let buckets = declaration
            .buckets
            .iter()
            .map(|(name, declared)| asset(AssetKind::Bucket, name, declared, live.buckets.get(name)));
        let consumers = declaration
            .consumers
            .iter()
            .map(|(name, declared)| asset(AssetKind::Consumer, name, declared, live.consumers.get(name)));
        let undeclared = live.consumers.keys().filter(|name| !declaration.consumers.contains_key(*name));
        Self {
            assets: std::iter::once(stream).chain(beside).chain(buckets).chain(consumers).collect(),
            unknown_consumers: undeclared.cloned().collect(),
        }
    }

    /// Whether the server is exactly what is declared.
    pub fn is_empty(&self) -> bool {
        !self.changes_anything() && self.unknown_consumers.is_empty()
    }

    /// Whether applying it would do something.
    pub fn changes_anything(&self) -> bool {
        self.assets.iter().any(|asset| asset.action != Action::None)
    }

    /// The changes that will not be made, with their assets.
    pub fn refused(&self) -> impl Iterator<Item = (&AssetPlan, &FieldChange)> {
        let all = self.assets.iter().flat_map(|asset| asset.changes.iter().map(move |change| (asset, change)));
        all.filter(|(_, change)| matches!(change.verdict, Verdict::Refused { .. }))
    }
}

fn asset(kind: AssetKind, name: &str, declared: &Config, live: Option<&Config>) -> AssetPlan {
    let changes = live.map(|live| differences(kind, declared, live)).unwrap_or_default();
    let action = match live {
        None => Action::Create,
        Some(_) if changes.is_empty() => Action::None,
        Some(_) => Action::Update,
    };
    AssetPlan { kind, name: name.to_owned(), action, changes }
}

fn differences(kind: AssetKind, declared: &Config, live: &Config) -> Vec<FieldChange> {
    let (declared, live) = (spelled_alike(declared), spelled_alike(live));
    let mut fields: Vec<&String> = declared.keys().chain(live.keys()).collect();
    fields.sort();
    fields.dedup();
    let change = |field: &String| {
        let of = |config: &Config| config.get(field).cloned().unwrap_or(Value::Null);
        let (live, declared) = (of(&live), of(&declared));
        let differs = meaning(kind, field, &live) != meaning(kind, field, &declared);
        let verdict = rules::judge(kind, field, &live, &declared);
        differs.then(|| FieldChange { field: field.clone(), live, declared, verdict })
    };
    fields.into_iter().filter_map(change).collect()
}

/// The configuration without the server's own notes, and with one name and one order for the filters.
fn spelled_alike(config: &Config) -> Config {
    let alike = |(field, value): (&String, &Value)| match (field.as_str(), value) {
        // One filter may be reported under another name than several.
        ("filter_subject", one) => ("filter_subjects".to_owned(), Value::from(vec![one.clone()])),
        (_, Value::Array(items)) => (field.clone(), sorted(items)),
        (_, Value::Object(members)) => (field.clone(), without_server_notes(members)),
        _ => (field.clone(), value.clone()),
    };
    config.iter().map(alike).collect()
}

fn sorted(items: &[Value]) -> Value {
    let mut items = items.to_vec();
    items.sort_by_key(Value::to_string);
    Value::Array(items)
}

fn without_server_notes(members: &Config) -> Value {
    let kept = members.iter().filter(|(name, _)| !name.starts_with("_nats."));
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The value, or nothing when it says no more than leaving the field out does.
fn meaning<'a>(kind: AssetKind, field: &str, value: &'a Value) -> Option<&'a Value> {
    let unset = match value {
        Value::Null | Value::Bool(false) => true,
        // All limits of JetStream read 0 and -1 as "none".
        Value::Number(number) => matches!(number.as_i64(), Some(0 | -1)),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(true) => false,
    };
    (!unset && !rules::is_default(kind, field, value)).then_some(value)
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for asset in &self.assets {
            writeln!(f, "{asset}")?;
        }
        for name in &self.unknown_consumers {
            writeln!(f, "consumer {name}: not declared; left alone")?;
        }
        Ok(())
    }
}

impl fmt::Display for AssetPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            AssetKind::Stream => "stream",
            AssetKind::Bucket => "bucket",
            AssetKind::Consumer => "consumer",
        };
        let action = match self.action {
            Action::None => "as declared",
            Action::Create => "create",
            Action::Update => "update",
        };
        write!(f, "{kind} {}: {action}", self.name)?;
        for FieldChange { field, live, declared, verdict } in &self.changes {
            write!(f, "\n  {field}: {live} -> {declared}")?;
            match verdict {
                Verdict::Safe => {}
                Verdict::Note { text } => write!(f, "\n    note: {text}")?,
                Verdict::Refused { why } => write!(f, "\n    refused: {why}")?,
            }
        }
        Ok(())
    }
}
