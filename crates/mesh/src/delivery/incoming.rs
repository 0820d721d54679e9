//! A message on its way to its subscribers: its bytes, its envelope, and what is known about its deliveries.

use std::time::Duration;

use envelope::{DecodeError, EventType, Metadata, RawMessage, Subject, Timestamp, fingerprint, ids, peek};
use tokio::time::Instant;
use uuid::Uuid;

/// One received message.
#[derive(Debug)]
pub(crate) struct Incoming {
    raw: RawMessage,
    metadata: Result<Metadata, DecodeError>,
    id: Uuid,
    stream_sequence: u64,
    received_at: Instant,
    redelivered: bool,
}

impl Incoming {
    /// `redelivered` is the server's word that the message was delivered before.
    pub(crate) fn new(raw: RawMessage, stream_sequence: u64, stored_at: Timestamp, redelivered: bool) -> Self {
        let metadata = peek(&raw);
        let id = match &metadata {
            Ok(metadata) => metadata.id,
            Err(_) => content_id(&raw, stored_at),
        };
        Self { raw, metadata, id, stream_sequence, received_at: Instant::now(), redelivered }
    }

    pub(crate) fn raw(&self) -> &RawMessage {
        &self.raw
    }

    /// The envelope, or why there is none.
    pub(crate) fn metadata(&self) -> Result<&Metadata, &DecodeError> {
        self.metadata.as_ref()
    }

    /// The id of the fact; for a message without a readable one, an id derived from its bytes.
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }

    /// The ordering key; for a message without a readable one, its subject.
    pub(crate) fn key(&self) -> &str {
        match &self.metadata {
            Ok(metadata) => &metadata.key,
            Err(_) => &self.raw.subject,
        }
    }

    /// The type that the subject names: routing and permissions went by it.
    pub(crate) fn subject_type(&self) -> Option<EventType> {
        Subject::parse(&self.raw.subject).ok().map(|subject| subject.event_type().clone())
    }

    /// For tables and logs.
    pub(crate) fn event_type_text(&self) -> String {
        self.subject_type().map_or_else(|| self.raw.subject.clone(), |event_type| event_type.to_string())
    }

    pub(crate) fn stream_sequence(&self) -> u64 {
        self.stream_sequence
    }

    /// How long this process has had it. A restart begins anew, which only waits longer; no two clocks are compared.
    pub(crate) fn waited(&self) -> Duration {
        self.received_at.elapsed()
    }

    /// Whether an execution of this message may have happened before this process received it.
    pub(crate) fn is_redelivery(&self) -> bool {
        self.redelivered
    }
}

/// Same bytes, same id, so that keeping the message twice keeps it once.
fn content_id(raw: &RawMessage, stored_at: Timestamp) -> Uuid {
    let millis = u128::try_from(stored_at.unix_millis()).unwrap_or_default();
    let root = Uuid::from_u128(millis << 80);
    let nameless = EventType { domain: String::new(), name: String::new(), major: 0 };
    let hash = fingerprint(&nameless, &format!("{} {:?}", raw.subject, raw.headers), &raw.body);
    let label: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    ids::derive_named(root, "undecodable", &label)
}
