//! Creates streams, buckets and consumers from files that hold exactly the JSON of the JetStream API.

use std::fs;
use std::path::{Path, PathBuf};

use async_nats::{Client, HeaderMap, Message, RequestError};
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// What has been created.
#[derive(Debug)]
pub(super) struct Applied {
    /// The name of the stream that the consumers read.
    stream: String,
    /// Subjects of it, and of the streams that hold the buckets.
    subjects: Vec<String>,
    consumers: Vec<String>,
}

/// Creates the stream of `directory/stream.json`, the streams of `directory/buckets/*.json` that hold key-value buckets, and
/// the consumers of `directory/consumers/*.json`, with so many copies.
pub(super) async fn apply(client: &Client, directory: &Path, replicas: usize) -> Result<Applied> {
    let stream = read(&directory.join("stream.json"))?;
    let name = text(&stream, "name", directory)?.to_owned();
    let mut subjects = Vec::new();
    let buckets = json_files(&directory.join("buckets"))?.into_iter().map(|file| read(&file));
    for config in std::iter::once(Ok(stream)).chain(buckets) {
        let mut config = config?;
        config["num_replicas"] = json!(replicas);
        let name = text(&config, "name", directory)?;
        request(client, &format!("$JS.API.STREAM.CREATE.{name}"), &config).await?;
        let named = config["subjects"].as_array().into_iter().flatten().filter_map(Value::as_str);
        subjects.extend(named.map(str::to_owned));
    }
    let mut consumers = Vec::new();
    for file in json_files(&directory.join("consumers"))? {
        let consumer = read(&file)?;
        let durable = text(&consumer, "name", &file).or_else(|_| text(&consumer, "durable_name", &file))?.to_owned();
        let subject = format!("$JS.API.CONSUMER.CREATE.{name}.{durable}");
        request(client, &subject, &json!({ "stream_name": name, "config": consumer, "action": "create" })).await?;
        consumers.push(durable);
    }
    Ok(Applied { stream: name, subjects, consumers })
}

impl Applied {
    /// Whether the stream and its consumers can be reached from where `client` is connected: word of who leads them travels
    /// through a cluster for a moment, and until then there is nobody to answer. What is asked changes nothing.
    pub(super) async fn reachable_from(&self, client: &Client) -> Result<(), String> {
        for subject in &self.subjects {
            // Refused, since the name is not the stream's.
            let mut headers = HeaderMap::new();
            headers.insert("Nats-Expected-Stream", "-");
            let probe = subject.replace(['*', '>'], "probe");
            answered(client.request_with_headers(probe, headers, "".into()).await, subject)?;
        }
        for consumer in &self.consumers {
            let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{consumer}", self.stream);
            // Refused, since it is not JSON.
            answered(client.request(subject.clone(), "{".into()).await, &subject)?;
        }
        Ok(())
    }
}

fn answered(answer: Result<Message, RequestError>, subject: &str) -> Result<(), String> {
    answer.map(drop).map_err(|error| format!("{subject}: {error}"))
}

/// Sends one request of the JetStream API and returns the answer.
async fn request(client: &Client, subject: &str, body: &Value) -> Result<Value> {
    let answer = client
        .request(subject.to_owned(), body.to_string().into())
        .await
        .map_err(Error::nats(format!("request {subject}")))?;
    let answer: Value =
        serde_json::from_slice(&answer.payload).map_err(Error::nats(format!("read the answer to {subject}")))?;
    let Some(error) = answer.get("error") else { return Ok(answer) };
    Err(Error::JetStream {
        subject: subject.to_owned(),
        code: error["err_code"].as_u64().unwrap_or_default(),
        description: error["description"].as_str().unwrap_or_default().to_owned(),
    })
}

fn read(file: &Path) -> Result<Value> {
    let bytes = fs::read(file).map_err(Error::io(format!("read {}", file.display())))?;
    serde_json::from_slice(&bytes).map_err(|error| Error::Unusable(format!("{} is not JSON: {error}", file.display())))
}

fn text<'a>(config: &'a Value, field: &str, file: &Path) -> Result<&'a str> {
    let value = config[field].as_str();
    value.ok_or_else(|| Error::Unusable(format!("the configuration in {} has no \"{field}\"", file.display())))
}

/// The JSON files of a directory by name; none when there is no such directory.
fn json_files(directory: &Path) -> Result<Vec<PathBuf>> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(directory).map_err(Error::io(format!("list {}", directory.display())))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    Ok(files)
}
