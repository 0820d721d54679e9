//! The buckets of a service: declared elsewhere, verified here, never created.

use std::time::Duration;

use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};

use super::bucket::Bucket;
use super::service::KvService;
use super::{DEAD, INBOX, bucket_name};
use crate::broker::{Broker, STREAM};

/// What a service relies on.
#[derive(Debug, Clone)]
pub(super) struct Buckets {
    inbox: String,
    /// Of its dead letters, and of its own.
    others: Vec<(String, Ages)>,
}

/// What a bucket may do with old entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ages {
    /// Never forget them.
    Never,
    /// As the service likes.
    Freely,
}

/// Why the buckets cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeclaredError {
    #[error("the bucket `{bucket}` does not exist ({why}); run `meshctl streams apply`")]
    Missing { bucket: String, why: String },
    #[error("the bucket `{bucket}` cannot be read ({why}); a missing permission looks like this too")]
    Unavailable { bucket: String, why: String },
    #[error("the bucket `{bucket}` has drifted: {}; run `meshctl streams diff`", .differences.join("; "))]
    Drifted { bucket: String, differences: Vec<String> },
}

impl Buckets {
    pub(super) fn of(service: &KvService) -> Self {
        let own = service.buckets.iter().map(|bucket| (bucket_name(bucket, service.name), Ages::Freely));
        let dead = (bucket_name(DEAD, service.name), Ages::Never);
        Self { inbox: bucket_name(INBOX, service.name), others: std::iter::once(dead).chain(own).collect() }
    }

    /// Compares what this build relies on with what is there.
    pub(super) async fn check(&self, broker: &Broker) -> Result<(), DeclaredError> {
        let facts = config_of(broker, STREAM, STREAM).await?;
        let inbox = bucket_config(broker, &self.inbox).await?;
        let mut differences = unlike_a_bucket(&self.inbox, &inbox);
        differences.extend(too_forgetful(inbox.max_age, facts.max_age));
        drifted(&self.inbox, differences)?;
        for (bucket, ages) in &self.others {
            let config = bucket_config(broker, bucket).await?;
            let mut differences = unlike_a_bucket(bucket, &config);
            if *ages == Ages::Never && config.max_age > Duration::ZERO {
                differences.push("max_age is set, which drops dead letters".to_owned());
            }
            drifted(bucket, differences)?;
        }
        Ok(())
    }
}

fn drifted(bucket: &str, differences: Vec<String>) -> Result<(), DeclaredError> {
    if differences.is_empty() {
        return Ok(());
    }
    Err(DeclaredError::Drifted { bucket: bucket.to_owned(), differences })
}

async fn bucket_config(broker: &Broker, bucket: &str) -> Result<Config, DeclaredError> {
    config_of(broker, bucket, &Bucket::stream_of(bucket)).await
}

async fn config_of(broker: &Broker, bucket: &str, stream: &str) -> Result<Config, DeclaredError> {
    let (bucket, jetstream) = (bucket.to_owned(), broker.connection().jetstream);
    match jetstream.get_stream(stream).await {
        Ok(stream) => Ok(stream.cached_info().config.clone()),
        Err(error) => Err(match error.kind() {
            GetStreamErrorKind::JetStream(why) if why.code() == 404 => {
                DeclaredError::Missing { bucket, why: why.to_string() }
            }
            _ => DeclaredError::Unavailable { bucket, why: error.to_string() },
        }),
    }
}

/// What keeps a bucket from being one on which nothing is lost but what is too old.
fn unlike_a_bucket(bucket: &str, config: &Config) -> Vec<String> {
    let mut found = Vec::new();
    let subject = format!("$KV.{bucket}.>");
    if config.subjects != [subject.as_str()] {
        found.push(format!("subjects are {:?}, not [{subject:?}]", config.subjects));
    }
    if config.max_messages_per_subject != 1 {
        found.push(format!("max_msgs_per_subject is {}, not 1", config.max_messages_per_subject));
    }
    if config.retention != RetentionPolicy::Limits || config.storage != StorageType::File {
        found.push("it is not kept by limits in files".to_owned());
    }
    if config.discard != DiscardPolicy::New {
        found.push("discard is not `new`, so a full bucket forgets".to_owned());
    }
    if !config.allow_message_ttl {
        found.push("allow_msg_ttl is not set, so what is not settled would expire".to_owned());
    }
    found
}

/// A fact may be published again under its id as long as its publisher remembers it, which is as long as the stream keeps
/// it; the stream then keeps it once more. An inbox that forgets earlier would take the repeat for news.
fn too_forgetful(inbox: Duration, facts: Duration) -> Option<String> {
    if inbox.is_zero() || (!facts.is_zero() && inbox >= facts * 2) {
        return None;
    }
    let horizon = match facts {
        Duration::ZERO => "for ever".to_owned(),
        facts => format!("for {} s, twice the age of {STREAM}", (facts * 2).as_secs()),
    };
    Some(format!("max_age is {} s, but a fact may come again {horizon}", inbox.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket() -> Config {
        Config {
            subjects: vec!["$KV.inbox_probe.>".to_owned()],
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            allow_message_ttl: true,
            ..Config::default()
        }
    }

    #[test]
    fn what_would_lose_entries_is_named() {
        assert_eq!(unlike_a_bucket("inbox_probe", &bucket()), Vec::<String>::new());
        let cases = [
            (Config { subjects: vec!["$KV.other.>".to_owned()], ..bucket() }, "subjects"),
            (Config { max_messages_per_subject: 5, ..bucket() }, "max_msgs_per_subject"),
            (Config { storage: StorageType::Memory, ..bucket() }, "files"),
            (Config { retention: RetentionPolicy::WorkQueue, ..bucket() }, "limits"),
            (Config { discard: DiscardPolicy::Old, ..bucket() }, "discard"),
            (Config { allow_message_ttl: false, ..bucket() }, "allow_msg_ttl"),
        ];
        for (config, word) in cases {
            let found = unlike_a_bucket("inbox_probe", &config);
            assert!(found.len() == 1 && found[0].contains(word), "{word}: {found:?}");
        }
    }

    #[test]
    fn an_inbox_remembers_longer_than_a_fact_may_come_again() {
        let days = |days: u64| Duration::from_secs(days * 86_400);
        for (inbox, facts) in [(30, 14), (28, 14), (0, 14), (0, 0)] {
            assert_eq!(too_forgetful(days(inbox), days(facts)), None, "{inbox} and {facts} days");
        }
        for (inbox, facts) in [(14, 14), (27, 14), (1, 14), (3_650, 0)] {
            assert!(too_forgetful(days(inbox), days(facts)).is_some(), "{inbox} and {facts} days");
        }
    }
}
