//! Entries of one bucket: read from the leader, written only over the revision that was read.

use std::sync::Arc;

use async_nats::HeaderMap;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::RawMessageErrorKind;
use bytes::Bytes;
use futures_util::StreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::broker::Broker;

/// The revision of an entry that is not there.
const ABSENT: u64 = 0;

/// Set by clients of the key-value protocol on the mark that a deletion leaves.
const OPERATION: &str = "KV-Operation";
/// Set by the server on the mark that an expiry leaves.
const MARKER: &str = "Nats-Marker-Reason";

/// A bucket of the service. Clones share it.
///
/// Buckets are declared in `nats/buckets/` and created by `meshctl streams apply`, never by a service.
#[derive(Debug, Clone)]
pub struct Bucket {
    broker: Arc<Broker>,
    name: Arc<str>,
}

/// An entry and which write of the bucket it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// What was written.
    pub value: T,
    /// Given to [`Bucket::update`] so that nobody else's write is lost.
    pub revision: u64,
}

/// How long an entry lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// As long as the bucket's `max_age` says, from this write on.
    OfBucket,
    /// Until it is written again, whatever the bucket says.
    Unlimited,
}

/// Why a bucket did not do it.
#[derive(Debug, thiserror::Error)]
pub enum KvError {
    /// Somebody else wrote the entry meanwhile. As a handler's error it runs the handler again soon, from a fresh read.
    #[error("`{key}` of the bucket `{bucket}` was written by somebody else")]
    Conflict {
        /// The bucket.
        bucket: String,
        /// The entry.
        key: String,
    },
    /// Nobody knows whether it was done. As a handler's error it is an outage.
    #[error("the bucket `{bucket}` does not answer: {why}")]
    Unavailable {
        /// The bucket.
        bucket: String,
        /// In the words of the client.
        why: String,
    },
    /// The entry is not what this build writes.
    #[error("`{key}` of the bucket `{bucket}` cannot be read")]
    Unreadable {
        /// The bucket.
        bucket: String,
        /// The entry.
        key: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl Bucket {
    pub(crate) fn new(broker: Arc<Broker>, name: &str) -> Self {
        Self { broker, name: name.into() }
    }

    /// The stream that holds a bucket.
    pub(crate) fn stream_of(name: &str) -> String {
        format!("KV_{name}")
    }

    /// The entry of this key, if there is one. Keys are tokens of letters, digits, `-`, `_` and `=`, joined by dots.
    ///
    /// # Errors
    /// [`KvError::Unavailable`], [`KvError::Unreadable`].
    pub async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<Found<T>>, KvError> {
        let Some(message) = self.last(key).await?.filter(is_entry) else { return Ok(None) };
        let unreadable = |source| KvError::Unreadable { bucket: self.name.to_string(), key: key.to_owned(), source };
        let value = serde_json::from_slice(&message.payload).map_err(unreadable)?;
        Ok(Some(Found { value, revision: message.sequence }))
    }

    /// Writes an entry that must not be there. Returns its revision.
    ///
    /// # Errors
    /// [`KvError::Conflict`] when it is there; [`KvError::Unavailable`].
    pub async fn create<T: Serialize + Sync>(&self, key: &str, value: &T, lives: Lifetime) -> Result<u64, KvError> {
        let created = self.update(key, value, ABSENT, lives).await;
        if !matches!(created, Err(KvError::Conflict { .. })) {
            return created;
        }
        match self.last(key).await? {
            // What is there is the mark of a deletion.
            Some(message) if !is_entry(&message) => self.update(key, value, message.sequence, lives).await,
            _ => created,
        }
    }

    /// Writes an entry over the revision that was read. Returns the new one.
    ///
    /// # Errors
    /// [`KvError::Conflict`] when it has another revision by now; [`KvError::Unavailable`].
    pub async fn update<T: Serialize + Sync>(
        &self,
        key: &str,
        value: &T,
        revision: u64,
        lives: Lifetime,
    ) -> Result<u64, KvError> {
        let value = serde_json::to_vec(value).map_err(|error| self.unavailable(error))?;
        let mut headers = HeaderMap::new();
        if lives == Lifetime::Unlimited {
            headers.insert("Nats-TTL", "never");
        }
        self.put(key, value.into(), headers, revision).await
    }

    /// Takes an entry away, if it still has this revision.
    pub(crate) async fn remove(&self, key: &str, revision: u64) -> Result<(), KvError> {
        let mut headers = HeaderMap::new();
        headers.insert(OPERATION, "PURGE");
        // Nobody watches the bucket, so the mark has nobody to tell.
        headers.insert("Nats-TTL", "1s");
        self.put(key, Bytes::new(), headers, revision).await.map(drop)
    }

    /// The key of the newest entry that the pattern takes; in it, `*` stands for one token and `>` for all that follow.
    pub(crate) async fn newest(&self, pattern: &str) -> Result<Option<String>, KvError> {
        match self.last(pattern).await? {
            Some(message) if !is_entry(&message) => self.any_before(pattern, message.sequence).await,
            message => Ok(message.map(|message| self.key_of(&message))),
        }
    }

    /// Whether it holds nothing at all.
    pub(crate) async fn is_empty(&self) -> Result<bool, KvError> {
        let info = self.stream().await?.get_info().await.map_err(|error| self.unavailable(error))?;
        Ok(info.state.messages == 0)
    }

    /// How many keys the pattern takes. The server lists them all, so this is for few.
    pub(crate) async fn count(&self, pattern: String) -> Result<u64, KvError> {
        let info = self.stream().await?.info_builder().subjects(self.subject(&pattern)).fetch().await;
        let keys = info.map_err(|error| self.unavailable(error))?.count();
        Ok(keys.await as u64)
    }

    /// The same, when the newest message is the mark of a deletion.
    async fn any_before(&self, pattern: &str, mark: u64) -> Result<Option<String>, KvError> {
        let mut from = 1;
        while from < mark {
            let stream = self.stream().await?;
            let next = stream.raw_message_builder().sequence(from).next_by_subject(self.subject(pattern)).send().await;
            match self.found(next.map_err(|error| (error.kind(), error.to_string())))? {
                Some(message) if is_entry(&message) => return Ok(Some(self.key_of(&message))),
                Some(message) => from = message.sequence + 1,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    async fn last(&self, pattern: &str) -> Result<Option<StreamMessage>, KvError> {
        let stream = self.stream().await?;
        let last = stream.raw_message_builder().last_by_subject(self.subject(pattern)).send().await;
        self.found(last.map_err(|error| (error.kind(), error.to_string())))
    }

    fn found(
        &self,
        answer: Result<StreamMessage, (RawMessageErrorKind, String)>,
    ) -> Result<Option<StreamMessage>, KvError> {
        match answer {
            Ok(message) => Ok(Some(message)),
            Err((RawMessageErrorKind::NoMessageFound, _)) => Ok(None),
            Err((_, why)) => Err(self.unavailable(why)),
        }
    }

    async fn put(&self, key: &str, value: Bytes, mut headers: HeaderMap, revision: u64) -> Result<u64, KvError> {
        headers.insert("Nats-Expected-Last-Subject-Sequence", revision.to_string());
        let jetstream = self.broker.connection().jetstream;
        let sent = jetstream.publish_with_headers(self.subject(key), headers, value).await;
        let acknowledged = match sent {
            Ok(acknowledgement) => acknowledgement.await,
            Err(error) => Err(error),
        };
        match acknowledged {
            // As everywhere: only a sequence says that it is stored.
            Ok(ack) if ack.sequence > 0 => Ok(ack.sequence),
            Ok(_) => Err(self.unavailable("an acknowledgement without a sequence")),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
                Err(KvError::Conflict { bucket: self.name.to_string(), key: key.to_owned() })
            }
            Err(error) => Err(self.unavailable(error)),
        }
    }

    async fn stream(&self) -> Result<async_nats::jetstream::stream::Stream<()>, KvError> {
        let jetstream = self.broker.connection().jetstream;
        let stream = jetstream.get_stream_no_info(Self::stream_of(&self.name)).await;
        stream.map_err(|error| self.unavailable(error))
    }

    fn subject(&self, key: &str) -> String {
        format!("$KV.{}.{key}", self.name)
    }

    fn key_of(&self, message: &StreamMessage) -> String {
        let prefix = self.subject("");
        message.subject.strip_prefix(&prefix).unwrap_or(&message.subject).to_owned()
    }

    fn unavailable(&self, why: impl std::fmt::Display) -> KvError {
        KvError::Unavailable { bucket: self.name.to_string(), why: why.to_string() }
    }
}

/// Whether the message is an entry and not the mark that one was deleted.
fn is_entry(message: &StreamMessage) -> bool {
    message.headers.get(OPERATION).is_none() && message.headers.get(MARKER).is_none()
}
