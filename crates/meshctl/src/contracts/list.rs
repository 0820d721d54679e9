//! `contracts schemas`: what there is.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::Schemas;
use super::folder::ContractFolder;
use crate::outcome::Outcome;
use crate::output::{Format, say};

/// A JSON document that is printed as it is.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Document(pub(super) Value);

/// One major of one fact.
#[derive(Debug, Serialize)]
struct Row {
    #[serde(rename = "type")]
    event_type: String,
    revision: u16,
    samples: usize,
    members: Vec<String>,
    path: String,
}

/// All of them.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Rows(Vec<Row>);

/// What `--lock` did.
#[derive(Debug, Serialize)]
struct Locked {
    entered: Vec<String>,
}

pub(super) fn run(schemas: &Schemas, format: Format) -> anyhow::Result<Outcome> {
    let folders = schemas.folders.read()?;
    if schemas.lock {
        let mut entered = Vec::new();
        for folder in &folders {
            entered.extend(folder.enter_new_files()?);
        }
        format.print(&Locked { entered })?;
        return Ok(Outcome::Yes);
    }
    let Some(fact) = &schemas.fact else {
        format.print(&Rows(folders.iter().flat_map(rows).collect()))?;
        return Ok(Outcome::Yes);
    };
    match find(&folders, fact) {
        Some(schema) => {
            Format::Json.print(&Document(schema.clone()))?;
            Ok(Outcome::Yes)
        }
        None => {
            say(format_args!("there is no fact {fact}"));
            Ok(Outcome::No)
        }
    }
}

/// The newest schema of a fact: of the major that is named, else of the latest.
fn find<'a>(folders: &'a [ContractFolder], name: &str) -> Option<&'a Value> {
    let named = name.rsplit_once(".v").and_then(|(fact, major)| Some((fact, Some(major.parse::<u16>().ok()?))));
    let (fact, major) = named.unwrap_or((name, None));
    let fits = |known: &&(&str, u16)| known.0 == fact && major.is_none_or(|major| major == known.1);
    folders.iter().find_map(|folder| {
        let facts = folder.facts();
        let (fact, major) = facts.iter().rev().find(fits)?;
        folder.newest(fact, *major).map(|file| &file.schema)
    })
}

fn rows(folder: &ContractFolder) -> Vec<Row> {
    let row = |(fact, major): (&str, u16)| {
        let newest = folder.newest(fact, major)?;
        let members = newest.schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
        Some(Row {
            event_type: format!("{fact}.v{major}"),
            revision: newest.revision,
            samples: folder.samples.iter().filter(|sample| sample.fact == fact && sample.major == major).count(),
            members: members.collect(),
            path: newest.name.clone(),
        })
    };
    folder.facts().into_iter().filter_map(row).collect()
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|row| row.event_type.len()).max().unwrap_or_default();
        for row in &self.0 {
            writeln!(f, "{:<width$}  revision {}  {}", row.event_type, row.revision, row.members.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entered.as_slice() {
            [] => f.write_str("nothing new"),
            names => names.iter().try_for_each(|name| writeln!(f, "{name}")),
        }
    }
}
