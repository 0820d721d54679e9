//! The folder `nats/`: stream, buckets, consumers and users as data, in the words of the JetStream API and of the server.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::catalogue::json_files;
use crate::outcome::Failure;

/// The configuration of a stream or a consumer, member for member as the JetStream API takes it.
pub type Config = Map<String, Value>;

/// What `nats/` declares.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// The one stream of facts.
    pub stream: Config,
    /// Streams beside it by name, which nobody's facts depend on.
    pub side_streams: BTreeMap<String, Config>,
    /// Its durable consumers by name.
    pub consumers: BTreeMap<String, Config>,
    /// Key-value buckets by name, each as the stream `KV_<name>` that holds it.
    pub buckets: BTreeMap<String, Config>,
    /// Who may connect, and what each may do.
    pub users: Vec<User>,
}

/// One NATS user. Keys are no part of it: they are made where the server is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The service, or the role.
    pub name: String,
    /// Where its replies go. Nobody else may listen there.
    pub inbox_prefix: String,
    /// In the words of the server's configuration.
    pub permissions: Permissions,
}

/// What a user may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Permissions {
    /// Subjects that it may publish to.
    pub publish: Rule,
    /// Subjects that it may subscribe to.
    pub subscribe: Rule,
    /// Whether it may answer a request on the subject that the request names.
    pub allow_responses: bool,
}

/// What is not listed is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Subjects, with wildcards.
    pub allow: Vec<String>,
}

/// The file `users.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    /// One for each service, and the operator.
    pub users: Vec<User>,
}

impl Declaration {
    /// Reads the folder.
    ///
    /// # Errors
    /// When a file is missing or malformed, or its name and the name in it differ.
    pub fn load(directory: &Path) -> anyhow::Result<Self> {
        let stream: Config = read(&directory.join("stream.json"))?;
        name_of(&stream).context("stream.json")?;
        let users: Users = read(&directory.join("users.json"))?;
        let side_streams = read_side_streams(&directory.join("streams"))?;
        let consumers = read_consumers(&directory.join("consumers"))?;
        let buckets = read_buckets(&directory.join("buckets"))?;
        Ok(Self { stream, side_streams, consumers, buckets, users: users.users })
    }

    /// The name of the stream.
    pub fn stream_name(&self) -> &str {
        self.stream.get("name").and_then(Value::as_str).unwrap_or_default()
    }
}

/// The folder to use: the chosen one, else `nats` in the working directory, else the one of the checkout that this program
/// was built from.
///
/// # Errors
/// A usage error when there is none.
pub fn directory(chosen: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(chosen) = chosen {
        return Ok(chosen.to_owned());
    }
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nats");
    [PathBuf::from("nats"), checkout]
        .into_iter()
        .find(|directory| directory.join("stream.json").is_file())
        .ok_or_else(|| Failure::usage("there is no nats/stream.json here: name the folder with --dir"))
}

/// None is declared where there is no such folder.
fn read_side_streams(directory: &Path) -> anyhow::Result<BTreeMap<String, Config>> {
    let mut streams = BTreeMap::new();
    if !directory.is_dir() {
        return Ok(streams);
    }
    for path in json_files(directory)? {
        let config: Config = read(&path)?;
        let name = name_of(&config).with_context(|| path.display().to_string())?.to_owned();
        if path.file_stem().is_none_or(|stem| stem != name.as_str()) {
            return Err(Failure::usage(format!("{} declares the stream {name}: rename one", path.display())));
        }
        streams.insert(name, config);
    }
    Ok(streams)
}

/// None when there is no such folder: a mesh may do without.
fn read_buckets(directory: &Path) -> anyhow::Result<BTreeMap<String, Config>> {
    let mut buckets = BTreeMap::new();
    if !directory.is_dir() {
        return Ok(buckets);
    }
    for path in json_files(directory)? {
        let config: Config = read(&path)?;
        let stream = name_of(&config).with_context(|| path.display().to_string())?;
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if stream != format!("KV_{name}") {
            return Err(Failure::usage(format!("{} declares the stream {stream}, not KV_{name}", path.display())));
        }
        buckets.insert(name.to_owned(), config);
    }
    Ok(buckets)
}

fn read_consumers(directory: &Path) -> anyhow::Result<BTreeMap<String, Config>> {
    let mut consumers = BTreeMap::new();
    for path in json_files(directory)? {
        let config: Config = read(&path)?;
        let name = name_of(&config).with_context(|| path.display().to_string())?.to_owned();
        if path.file_stem().is_none_or(|stem| stem != name.as_str()) {
            return Err(Failure::usage(format!("{} declares the consumer {name}: rename one", path.display())));
        }
        if config.get("durable_name").and_then(Value::as_str) != Some(&name) {
            return Err(Failure::usage(format!("{}: durable_name must be {name}", path.display())));
        }
        consumers.insert(name, config);
    }
    Ok(consumers)
}

fn name_of(config: &Config) -> anyhow::Result<&str> {
    let name = config.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    name.ok_or_else(|| Failure::usage("there is no name in it"))
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> anyhow::Result<T> {
    let text =
        fs::read_to_string(path).map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    serde_json::from_str(&text).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}
