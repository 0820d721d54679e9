//! A fact that is validated and waits in memory for the commit of its transaction.

use envelope::{
    BODY_BYTES_MAX, EncodeError, Event, HEADERS_BYTES_MAX, HeaderError, MESSAGE_BYTES_MAX, Metadata, Subject,
    SubjectError, headers,
};
use uuid::Uuid;

/// Why a fact was refused before it reached the database. Trying again gives the same answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// A service publishes facts of its own domain only.
    #[error("fact of domain `{domain}` published by service `{service}`")]
    ForeignFact {
        /// Domain of the fact.
        domain: &'static str,
        /// The service that tried.
        service: &'static str,
    },
    /// The first fact of a flow names the flow by its key.
    #[error("the key `{key}` of a root fact is not a UUID, so it cannot be the correlation id of its flow")]
    RootKey {
        /// The key as given.
        key: String,
    },
    /// A handler of many facts at once says with every fact which of them it reacts to.
    #[error("the fact does not say which of the received facts it reacts to: use `publish_for`")]
    NoCause,
    /// The flow looks like a loop.
    #[error("the fact would be {hops} reactions away from its root")]
    TooManyHops {
        /// Reactions between the root and this fact.
        hops: u16,
    },
    /// Headers and body together are larger than the limit of the contract.
    #[error("the message has {bytes} bytes with its headers, more than {limit}")]
    TooLarge {
        /// Bytes of headers and body.
        bytes: usize,
        /// The limit that was broken.
        limit: usize,
    },
    /// The body breaks the JSON profile.
    #[error(transparent)]
    Body(#[from] EncodeError),
    /// A value cannot be a header.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The key or the type cannot form a subject.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// The header list is no JSON.
    #[error("the header list cannot be stored")]
    HeaderList(#[from] serde_json::Error),
}

/// One row for the outbox, but for what only the database knows: its sequence, its key's version, its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StagedFact {
    pub(crate) bucket_group: i16,
    pub(crate) event_id: Uuid,
    pub(crate) subject: String,
    pub(crate) event_type: String,
    pub(crate) key: String,
    /// JSON array of `[name, value]`.
    pub(crate) headers: String,
    pub(crate) payload: Vec<u8>,
}

/// Bytes that the relay adds on the wire: the two headers from columns, id, expected stream, span, and the marks of an
/// atomic batch (names, values and separators, rounded up).
const RELAY_HEADERS_BYTES: usize = 512;

impl StagedFact {
    pub(crate) fn new<E: Event>(metadata: &Metadata, event: &E) -> Result<Self, PublishError> {
        let payload = envelope::encode(event)?;
        let subject = Subject::new(&metadata.event_type, &metadata.key)?;
        let headers = stored_headers(metadata)?;
        check_size(&headers, payload.len())?;
        Ok(Self {
            bucket_group: super::bucket_group(subject.bucket()),
            event_id: metadata.id,
            event_type: metadata.event_type.to_string(),
            key: metadata.key.clone(),
            subject: subject.as_str().to_owned(),
            headers: serde_json::to_string(&headers)?,
            payload,
        })
    }
}

/// All headers but the two that come from the row: its time and the version of its key.
fn stored_headers(metadata: &Metadata) -> Result<Vec<(String, String)>, HeaderError> {
    let mut list = metadata.to_headers()?;
    list.retain(|(name, _)| name != headers::CE_TIME && name != headers::CE_SEQUENCE);
    Ok(list)
}

fn check_size(headers: &[(String, String)], body: usize) -> Result<(), PublishError> {
    // ": " and CRLF around each header line.
    let lines: usize = headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    let headers = lines + RELAY_HEADERS_BYTES;
    let checks = [(headers, HEADERS_BYTES_MAX), (body, BODY_BYTES_MAX), (headers + body, MESSAGE_BYTES_MAX)];
    match checks.into_iter().find(|(bytes, limit)| bytes > limit) {
        Some((bytes, limit)) => Err(PublishError::TooLarge { bytes, limit }),
        None => Ok(()),
    }
}
