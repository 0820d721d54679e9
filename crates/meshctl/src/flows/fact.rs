//! One stored fact, as it was read from the stream.

use async_nats::jetstream::Message;
use envelope::{DecodeError, Metadata, RawMessage, Timestamp, fingerprint, peek};
use serde_json::Value;

/// A fact with its place in the stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredFact {
    /// Its place in the stream; facts are ordered by it, never by time.
    pub stream_sequence: u64,
    /// When the server stored it.
    pub stored_at: Timestamp,
    /// The envelope.
    pub metadata: Metadata,
    /// The body; null when it is not JSON.
    pub data: Value,
    /// Tells whether two messages under one id say the same.
    pub fingerprint: [u8; 32],
}

impl StoredFact {
    /// Reads a message of the stream.
    ///
    /// # Errors
    /// When its headers are no envelope, or its subject says something else.
    pub fn read(message: &Message) -> Result<Self, DecodeError> {
        let (stream_sequence, stored_at) = match message.info() {
            Ok(info) => (info.stream_sequence, Timestamp::from_offset(info.published)),
            // Only a message that was not delivered by JetStream lacks it.
            Err(_) => (0, Timestamp::from_offset(time::OffsetDateTime::UNIX_EPOCH)),
        };
        Self::new(stream_sequence, stored_at, &raw(message))
    }

    /// A fact from its parts.
    ///
    /// # Errors
    /// As [`StoredFact::read`].
    pub fn new(stream_sequence: u64, stored_at: Timestamp, raw: &RawMessage) -> Result<Self, DecodeError> {
        let metadata = peek(raw)?;
        let fingerprint = fingerprint(&metadata.event_type, &metadata.key, &raw.body);
        let data = serde_json::from_slice(&raw.body).unwrap_or_default();
        Ok(Self { stream_sequence, stored_at, metadata, data, fingerprint })
    }

    /// The name of the fact without its major, `<domain>.<fact>`.
    pub fn fact(&self) -> String {
        format!("{}.{}", self.metadata.event_type.domain, self.metadata.event_type.name)
    }

    /// The service that said it.
    pub fn service(&self) -> &str {
        let source = &self.metadata.source;
        source.strip_prefix("urn:mesh:").unwrap_or(source)
    }

    /// The subscriber, endpoint or timer that said it, without service and build.
    pub fn speaker(&self) -> &str {
        let name = self.metadata.emitter.split('@').next().unwrap_or_default();
        name.split_once('/').map_or(name, |(_service, speaker)| speaker)
    }
}

fn raw(message: &Message) -> RawMessage {
    let headers = message.headers.iter().flat_map(|headers| headers.iter());
    let lines =
        headers.flat_map(|(name, values)| values.iter().map(move |value| (name.to_string(), value.to_string())));
    RawMessage { subject: message.subject.to_string(), headers: lines.collect(), body: message.payload.to_vec() }
}

/// `orders.order_created` as people say it: `OrderCreated`. The domain is left out, since the service stands beside it.
pub fn spoken(fact: &str) -> String {
    let name = fact.split('.').nth(1).unwrap_or(fact);
    name.split('_').map(capitalised).collect()
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}
