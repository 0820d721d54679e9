//! The catalogue, read as data: which subscriber hears which fact.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// One subscriber of one service and what it hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaction {
    /// The service.
    pub service: String,
    /// The subscriber.
    pub subscriber: String,
    /// The types that it hears, `<domain>.<fact>.v<major>`.
    pub hears: Vec<String>,
}

#[derive(Deserialize)]
struct Entry {
    service: String,
    facts: Vec<serde::de::IgnoredAny>,
    reactions: Vec<Declared>,
}

#[derive(Deserialize)]
struct Declared {
    subscriber: String,
    on: String,
    majors: Vec<u16>,
}

/// Reads every entry of a catalogue directory that says something. A service that says nothing has no tables to look at, and
/// is no part of this shop.
pub(super) fn read(directory: &Path) -> Result<Vec<Reaction>> {
    let mut reactions = Vec::new();
    for file in std::fs::read_dir(directory).with_context(|| format!("list {}", directory.display()))? {
        let path = file?.path();
        let entry: Entry = serde_json::from_slice(&std::fs::read(&path)?)
            .with_context(|| format!("read the catalogue entry {}", path.display()))?;
        if entry.facts.is_empty() {
            continue;
        }
        let service = entry.service;
        reactions.extend(entry.reactions.into_iter().map(|declared| Reaction {
            service: service.clone(),
            subscriber: declared.subscriber,
            hears: declared.majors.iter().map(|major| format!("{}.v{major}", declared.on)).collect(),
        }));
    }
    Ok(reactions)
}
