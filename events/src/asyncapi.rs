//! The whole mesh as one AsyncAPI 3 document, for people and tools that do not read Rust.

mod headers;

pub use headers::always as required_headers;

use serde_json::{Map, Value, json};

use crate::{
    FactDeclaration, all,
    catalogue::{CatalogueError, Reaction, services},
};

/// Everything that a program in another language must know to take part, beyond the shapes below it.
const ABOUT: &str = "\
Services publish facts and react to facts of others; nobody coordinates them. Every fact is one NATS JetStream message in \
the stream `EVT`: CloudEvents 1.0 attributes in headers (binary mode), a bare JSON object as body.

**Subject.** `evt.<domain>.<fact>.v<major>.<bucket>`. The bucket is FNV-1a (32 bits, offset basis 2166136261, prime \
16777619) of the UTF-8 bytes of the key, modulo 64, in decimal without padding. Every fact of an order has the order id as its \
key, so all of them share a bucket. A message whose subject and headers disagree is not handled.

**Reading.** Pull from the durable consumer that carries your service's name; it exists already and is not yours to create. \
Acknowledge after your own transaction is committed. Messages arrive more than once and, between keys and services, in any \
order: remember `ce-id` in the same transaction as the effect, and let both orders of any two facts end in the same state. \
Fold header names to lower case; two different values under one name are an error; undo percent-encoding once. Ignore members \
that you do not know, treat null as absent, take `1.0` and `1e3` as integers. Keep codes that you do not know; never guess. \
What you cannot read is kept aside with its bytes and reported, never dropped and never retried for ever. A newer major is \
delayed first: your next version may read it.

**Writing.** Store the message in the transaction of its effect and publish it afterwards, until the stream acknowledges it with \
a sequence above 0. Publish again under the same `ce-id`. Body: UTF-8 without byte order mark, no member twice, no null, at \
most 32 levels, no U+0000, no lone surrogate, integers within ±(2^53 - 1), at most 61440 bytes; headers at most 4096 bytes. \
Header values are visible ASCII without `%` and `\"`. Only members that the schema declares.

**Ids.** The id of a fact is derived, so that handling a message again says the same again: a UUIDv8 whose first 48 bits are those \
of the causing event's id and whose rest is SHA-256 over four parts, each behind its length as 8 bytes big-endian: the text \
`mesh.event.1`, the 16 bytes of the causing id, `<service>/<subscriber>`, and the number of the fact within this handling (from \
0) as 4 bytes big-endian. An entry fact's id is a fresh UUIDv7.";

/// The document.
///
/// # Errors
/// When a catalogue file is not an entry.
pub fn document() -> Result<Value, CatalogueError> {
    let facts = all();
    let mut operations: Map<String, Value> = facts.iter().map(send).collect();
    for entry in services()? {
        for reaction in &entry.reactions {
            operations.extend(reaction.majors.iter().map(|major| receive(&entry.service, reaction, *major)));
        }
    }
    Ok(json!({
        "asyncapi": "3.0.0",
        "info": { "title": "The shop's facts", "version": "1.0.0", "description": ABOUT },
        "defaultContentType": "application/json",
        "channels": facts.iter().map(channel).collect::<Map<_, _>>(),
        "operations": operations,
        "components": {
            "messages": facts.iter().map(message).collect::<Map<_, _>>(),
            "schemas": { "headers": headers::schema() },
        },
    }))
}

fn channel(fact: &FactDeclaration) -> (String, Value) {
    let name = fact.event_type.to_string();
    let buckets: Vec<String> = (0..envelope::BUCKETS).map(|bucket| bucket.to_string()).collect();
    let channel = json!({
        "address": format!("evt.{name}.{{bucket}}"),
        "parameters": {
            "bucket": { "description": "FNV-1a 32 of the key modulo 64, in decimal.", "enum": buckets },
        },
        "messages": { name.as_str(): reference("components/messages", &name) },
        "x-jetstream": { "stream": "EVT" },
    });
    (name, channel)
}

fn message(fact: &FactDeclaration) -> (String, Value) {
    let name = fact.event_type.to_string();
    let mut schema = fact.schema.clone();
    let about = |keyword: &str| fact.schema.get(keyword).cloned().unwrap_or_default();
    if let Value::Object(members) = &mut schema {
        // The document says the dialect, and an id of its own would change what references resolve against.
        members.remove("$schema");
        members.remove("$id");
    }
    let message = json!({
        "name": name,
        "title": about("title"),
        "summary": about("description"),
        "contentType": "application/json",
        "correlationId": { "location": "$message.header#/ce-correlationid" },
        "headers": reference("components/schemas", "headers"),
        "payload": { "schemaFormat": "application/schema+json;version=draft-07", "schema": schema },
        "x-dataschema": about("$id"),
    });
    (name, message)
}

fn send(fact: &FactDeclaration) -> (String, Value) {
    let name = fact.event_type.to_string();
    let operation = json!({
        "action": "send",
        "channel": reference("channels", &name),
        "summary": format!("Only {} may publish it.", fact.publisher),
    });
    (format!("{}.send.{name}", fact.publisher), operation)
}

fn receive(service: &str, reaction: &Reaction, major: u16) -> (String, Value) {
    let name = format!("{}.v{major}", reaction.on);
    let emits = if reaction.emits.is_empty() { "nothing".to_owned() } else { reaction.emits.join(", ") };
    let operation = json!({
        "action": "receive",
        "channel": reference("channels", &name),
        "summary": format!("Subscriber {} of {service}. May say: {emits}.", reaction.subscriber),
        "x-jetstream": { "stream": "EVT", "durable": service, "filter": format!("evt.{name}.*") },
    });
    (format!("{service}.{}.v{major}", reaction.subscriber), operation)
}

fn reference(section: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/{section}/{name}") })
}
