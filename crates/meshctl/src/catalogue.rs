//! The catalogue to work on: who says what, who reacts to what, and what is expected after what.
//!
//! The files are those of `events/README.md`, so that contracts which are kept in another repository, in whatever language,
//! are read the same way as ours.

use std::fs;
use std::path::{Path, PathBuf};

use events::catalogue::ServiceEntry;
use events::flow::Flow;
use serde::de::DeserializeOwned;

use crate::outcome::Failure;

/// The file with the flows, beside the folder `catalogue`.
const FLOWS: &str = "flows.json";

/// Services and flows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    /// One entry for each service.
    pub services: Vec<ServiceEntry>,
    /// The kinds of flows.
    pub flows: Vec<Flow>,
}

impl Catalogue {
    /// The catalogue that this program was built with.
    ///
    /// # Errors
    /// When one of its files is no entry.
    pub fn built_in() -> anyhow::Result<Self> {
        Ok(Self { services: events::catalogue::services()?, flows: events::flow::all() })
    }

    /// Reads these folders together; the built-in catalogue when there is none.
    ///
    /// # Errors
    /// A usage error when a folder or a file in it cannot be used.
    pub fn load(folders: &[PathBuf]) -> anyhow::Result<Self> {
        if folders.is_empty() {
            return Self::built_in();
        }
        let mut all = Self::default();
        for folder in folders {
            let one = Self::read(folder)?;
            all.services.extend(one.services);
            all.flows.extend(one.flows);
        }
        Ok(all)
    }

    /// Reads one folder: the one with the services' files, or the one that has it under the name `catalogue`.
    ///
    /// # Errors
    /// As [`Catalogue::load`].
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let inner = folder.join("catalogue");
        let entries = if inner.is_dir() { inner } else { folder.to_owned() };
        let mut services = Vec::new();
        for path in json_files(&entries)? {
            if path.file_name().is_some_and(|name| name != FLOWS) {
                services.push(read_json(&path)?);
            }
        }
        if services.is_empty() {
            return Err(Failure::usage(format!("there is no <service>.json in {}", entries.display())));
        }
        let beside = [entries.join(FLOWS), entries.join("..").join(FLOWS)];
        let flows = beside.iter().find(|path| path.is_file()).map(|path| read_json(path)).transpose()?;
        Ok(Self { services, flows: flows.unwrap_or_default() })
    }
}

/// The files of a folder whose name ends in `.json`, sorted.
pub(crate) fn json_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let unreadable = |error: std::io::Error| Failure::usage(format!("cannot list {}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == "json") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Reads a file as JSON of this form.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = fs::read(path).map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    serde_json::from_slice(&text).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}
