//! Creates streams and consumers from files that hold exactly the JSON of the JetStream API.

use std::fs;
use std::path::{Path, PathBuf};

use async_nats::Client;
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// Creates the stream of `directory/stream.json` and the consumers of `directory/consumers/*.json`, with `replicas`
/// copies when that is given.
pub(super) async fn apply(client: &Client, directory: &Path, replicas: Option<usize>) -> Result<()> {
    let mut stream = read(&directory.join("stream.json"))?;
    if let Some(replicas) = replicas {
        stream["num_replicas"] = json!(replicas);
    }
    let name = text(&stream, "name", directory)?.to_owned();
    request(client, &format!("$JS.API.STREAM.CREATE.{name}"), &stream).await?;
    for file in consumer_files(&directory.join("consumers"))? {
        let consumer = read(&file)?;
        let durable = text(&consumer, "name", &file).or_else(|_| text(&consumer, "durable_name", &file))?;
        let subject = format!("$JS.API.CONSUMER.CREATE.{name}.{durable}");
        request(client, &subject, &json!({ "stream_name": name, "config": consumer, "action": "create" })).await?;
    }
    Ok(())
}

/// Sends one request of the JetStream API and returns the answer.
pub(super) async fn request(client: &Client, subject: &str, body: &Value) -> Result<Value> {
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

/// The files of a directory by name; none when there is no such directory.
fn consumer_files(directory: &Path) -> Result<Vec<PathBuf>> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(directory).map_err(Error::io(format!("list {}", directory.display())))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    Ok(files)
}
