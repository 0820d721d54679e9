//! The least that each user needs, derived from the catalogue.
//!
//! A service may publish its own facts, look whether the stream still holds them, pull from and acknowledge on its own
//! durable, wake its own replicas, use its own buckets and answer requests. It may not create a consumer, read another's, or
//! say another's fact. The operator reads everything and
//! administers JetStream, and may not say a fact at all.

use events::catalogue::ServiceEntry;

use crate::declaration::{Permissions, Rule, User, Users};

/// The user of the command line.
pub const OPERATOR: &str = "operator";

/// The users of a mesh of these services on the stream `stream`. A bucket belongs to the service that ends its name,
/// `inbox_<service>` for instance.
pub fn users(services: &[ServiceEntry], stream: &str, buckets: &[String]) -> Users {
    let service = |entry: &ServiceEntry| {
        let suffix = format!("_{}", entry.service);
        service(entry, stream, buckets.iter().filter(|bucket| bucket.ends_with(&suffix)))
    };
    let mut users: Vec<User> = services.iter().map(service).collect();
    users.sort_by(|a, b| a.name.cmp(&b.name));
    users.push(operator());
    Users { users }
}

/// The subjects that a service hears, one for each fact and major, sorted.
pub fn filters(entry: &ServiceEntry) -> Vec<String> {
    let mut subjects: Vec<String> = entry
        .reactions
        .iter()
        .flat_map(|reaction| reaction.majors.iter().map(|major| format!("evt.{}.v{major}.*", reaction.on)))
        .collect();
    subjects.sort();
    subjects.dedup();
    subjects
}

/// The prefix of a user's replies. With the shared default anybody could read them, pulled facts included.
pub fn inbox_prefix(user: &str) -> String {
    format!("_INBOX_{user}")
}

fn service<'a>(entry: &ServiceEntry, stream: &str, buckets: impl Iterator<Item = &'a String>) -> User {
    let name = &entry.service;
    let buckets: Vec<String> = buckets.flat_map(|bucket| of_bucket(bucket)).collect();
    let speaks = !entry.facts.is_empty();
    let mut publish = Vec::new();
    if speaks {
        publish.push(format!("evt.{name}.>"));
    }
    if !entry.facts.is_empty() || !entry.reactions.is_empty() {
        // By its creation time the relay tells whether it still is the stream that it published to; by its age the janitor
        // tells how long a settled fact may come again.
        publish.push(format!("$JS.API.STREAM.INFO.{stream}"));
    }
    if !entry.facts.is_empty() {
        // Whether a fact is still where the stream said it was. `nats/README.md` says why it is this and nothing less.
        publish.push(format!("$JS.API.STREAM.MSG.GET.{stream}"));
    }
    publish.extend(buckets);
    if !entry.reactions.is_empty() {
        publish.push(format!("$JS.API.CONSUMER.INFO.{stream}.{name}"));
        publish.push(format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}"));
        publish.push(format!("$JS.ACK.{stream}.{name}.>"));
        // The longer form of the same, which a server may be told to use (`js_ack_fc_v2`).
        publish.push(format!("$JS.ACK.*.*.{stream}.{name}.>"));
    }
    let mut subscribe = vec![format!("{}.>", inbox_prefix(name))];
    if speaks {
        publish.push(format!("mesh.wake.{name}"));
        subscribe.push(format!("mesh.wake.{name}"));
    }
    publish.push(format!("mesh.ops.{name}"));
    publish.push(format!("mesh.ops.{name}.events"));
    subscribe.push(format!("mesh.ctl.{name}.>"));
    subscribe.push("$SRV.>".to_owned());
    user(name, publish, subscribe, true)
}

/// To look at a bucket, read its entries from the leader, and write them. Neither to change nor to purge it.
fn of_bucket(bucket: &str) -> [String; 3] {
    let api = |verb| format!("$JS.API.STREAM.{verb}.KV_{bucket}");
    [api("INFO"), api("MSG.GET"), format!("$KV.{bucket}.>")]
}

fn operator() -> User {
    let publish = ["$JS.API.>", "$JS.FC.>", "$SRV.>", "mesh.ctl.>"];
    let inbox = format!("{}.>", inbox_prefix(OPERATOR));
    let subscribe = [inbox.as_str(), "$JS.EVENT.ADVISORY.>", "evt.>", "mesh.>"];
    user(OPERATOR, publish.map(str::to_owned).into(), subscribe.map(str::to_owned).into(), false)
}

fn user(name: &str, publish: Vec<String>, subscribe: Vec<String>, allow_responses: bool) -> User {
    let permissions =
        Permissions { publish: Rule { allow: publish }, subscribe: Rule { allow: subscribe }, allow_responses };
    User { name: name.to_owned(), inbox_prefix: inbox_prefix(name), permissions }
}

#[cfg(test)]
mod tests;
