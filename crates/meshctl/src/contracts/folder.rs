//! A folder of contracts, as `events/README.md` lays it out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::catalogue::{Catalogue, json_files, read_json};
use crate::outcome::Failure;

/// The file with the hashes of everything that was released.
const LOCK: &str = "lock.json";

/// What a folder holds.
#[derive(Debug, Clone)]
pub struct ContractFolder {
    /// Where it is.
    pub path: PathBuf,
    /// Every revision of every schema.
    pub schemas: Vec<SchemaFile>,
    /// Every sample body.
    pub samples: Vec<SampleFile>,
    /// Who says what; empty when the folder has schemas only.
    pub catalogue: Catalogue,
    /// What each service reads of a fact: service, type, schema.
    pub needs: Vec<(String, String, Value)>,
    /// Files below `schemas` that are no part of the layout.
    pub strays: Vec<String>,
    /// By path below `schemas`, the hash of the file.
    pub hashes: BTreeMap<String, String>,
    /// The same as it was when the file was released.
    pub locked: BTreeMap<String, String>,
}

/// One revision of a schema.
#[derive(Debug, Clone)]
pub struct SchemaFile {
    /// `<domain>.<fact>`.
    pub fact: String,
    /// The version of its meaning.
    pub major: u16,
    /// Additive edits of it.
    pub revision: u16,
    /// Path below `schemas`.
    pub name: String,
    /// The schema.
    pub schema: Value,
}

/// One body as a publisher sends it.
#[derive(Debug, Clone)]
pub struct SampleFile {
    /// `<domain>.<fact>`.
    pub fact: String,
    /// The version that it is of.
    pub major: u16,
    /// Path below `schemas`.
    pub name: String,
    /// The bytes.
    pub body: Vec<u8>,
}

/// What a path below `schemas` stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place<'a> {
    /// `<domain>.<fact>/v<major>/r<revision>.schema.json`
    Schema(&'a str, u16, u16),
    /// `<domain>.<fact>/v<major>/samples/<name>.json`
    Sample(&'a str, u16),
}

impl ContractFolder {
    /// Reads a folder.
    ///
    /// # Errors
    /// A usage error when it is not there, or a file in it is not JSON.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let (root, entries) = (path.join("schemas"), path.join("catalogue"));
        if !root.is_dir() && !entries.is_dir() {
            return Err(Failure::usage(format!("{} has neither schemas nor a catalogue", path.display())));
        }
        let catalogue = if entries.is_dir() { Catalogue::read(path)? } else { Catalogue::default() };
        let mut folder = Self {
            path: path.to_owned(),
            schemas: Vec::new(),
            samples: Vec::new(),
            needs: needs(path, &catalogue)?,
            catalogue,
            strays: Vec::new(),
            hashes: BTreeMap::new(),
            locked: lock(&root)?,
        };
        for file in files_below(&root)? {
            folder.take(&root, &file)?;
        }
        folder.schemas.sort_by(|a, b| (&a.fact, a.major, a.revision).cmp(&(&b.fact, b.major, b.revision)));
        Ok(folder)
    }

    fn take(&mut self, root: &Path, file: &Path) -> anyhow::Result<()> {
        let name = file.strip_prefix(root).unwrap_or(file).to_string_lossy().into_owned();
        if name == LOCK {
            return Ok(());
        }
        let body =
            fs::read(file).map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))?;
        self.hashes.insert(name.clone(), Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect());
        match place(&name) {
            Some(Place::Schema(fact, major, revision)) => {
                let (fact, schema) = (fact.to_owned(), read_json(file)?);
                self.schemas.push(SchemaFile { fact, major, revision, name, schema });
            }
            Some(Place::Sample(fact, major)) => {
                self.samples.push(SampleFile { fact: fact.to_owned(), major, name, body });
            }
            None => self.strays.push(name),
        }
        Ok(())
    }

    /// The facts with their majors, each once.
    pub fn facts(&self) -> BTreeSet<(&str, u16)> {
        self.schemas.iter().map(|schema| (schema.fact.as_str(), schema.major)).collect()
    }

    /// All revisions of one major, oldest first.
    pub fn revisions(&self, fact: &str, major: u16) -> Vec<&SchemaFile> {
        self.schemas.iter().filter(|schema| schema.fact == fact && schema.major == major).collect()
    }

    /// The newest revision of one major.
    pub fn newest(&self, fact: &str, major: u16) -> Option<&SchemaFile> {
        self.revisions(fact, major).pop()
    }

    /// Enters files into the lock that are not in it; returns their names.
    ///
    /// # Errors
    /// When the lock cannot be written.
    pub fn enter_new_files(&self) -> anyhow::Result<Vec<String>> {
        let mut locked = self.locked.clone();
        let mut entered = Vec::new();
        for (name, hash) in &self.hashes {
            if !locked.contains_key(name) {
                locked.insert(name.clone(), hash.clone());
                entered.push(name.clone());
            }
        }
        let text = format!("{}\n", serde_json::to_string_pretty(&locked)?);
        fs::write(self.path.join("schemas").join(LOCK), text)?;
        Ok(entered)
    }
}

/// Reads a path below `schemas`.
pub(super) fn place(name: &str) -> Option<Place<'_>> {
    let mut parts = name.split('/');
    let (fact, major) = (parts.next()?, number(parts.next()?, "v", "")?);
    fact.split_once('.').filter(|(domain, fact)| envelope::is_token(domain) && envelope::is_token(fact))?;
    match (parts.next()?, parts.next(), parts.next()) {
        ("samples", Some(sample), None) if sample.ends_with(".json") => Some(Place::Sample(fact, major)),
        (schema, None, None) => Some(Place::Schema(fact, major, number(schema, "r", ".schema.json")?)),
        _ => None,
    }
}

fn number(text: &str, before: &str, after: &str) -> Option<u16> {
    let digits = text.strip_prefix(before)?.strip_suffix(after)?;
    digits.parse().ok().filter(|number: &u16| *number > 0 && *digits == number.to_string())
}

fn lock(root: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let path = root.join(LOCK);
    if path.is_file() { read_json(&path) } else { Ok(BTreeMap::new()) }
}

fn needs(path: &Path, catalogue: &Catalogue) -> anyhow::Result<Vec<(String, String, Value)>> {
    let mut needs = Vec::new();
    for entry in &catalogue.services {
        for (event_type, file) in &entry.needs {
            needs.push((entry.service.clone(), event_type.clone(), read_json(&path.join(file))?));
        }
    }
    Ok(needs)
}

fn files_below(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = json_files(folder)?;
    let unreadable = |error: std::io::Error| Failure::usage(format!("cannot list {}: {error}", folder.display()));
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            found.extend(files_below(&path)?);
        }
    }
    found.sort();
    Ok(found)
}
