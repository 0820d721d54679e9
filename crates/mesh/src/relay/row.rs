//! One outbox row as the relay publishes it.

use std::borrow::Cow;

use bytes::Bytes;
use envelope::{Timestamp, headers};
use serde::Deserialize;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::broker::STREAM;

/// A committed fact that the relay has read.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) bucket_group: i16,
    pub(super) seq: i64,
    pub(super) event_id: Uuid,
    pub(super) subject: String,
    pub(super) key: String,
    pub(super) key_version: i64,
    pub(super) headers: String,
    pub(super) payload: Bytes,
    pub(super) occurred_at: OffsetDateTime,
    /// Publishes that the broker refused so far.
    pub(super) attempts: i32,
    /// Where the stream had stored the fact before it lost it, 0 in another stream; `None` when it never was.
    pub(super) lost_sequence: Option<i64>,
    /// The lease epoch under which the row was read.
    pub(super) epoch: i64,
}

/// Why a row cannot become a message. It never will: the writer's validation was bypassed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RowError {
    #[error("the stored header list is no JSON array of pairs")]
    HeaderList(#[from] serde_json::Error),
    #[error("the header `{name}` holds a value that NATS does not carry")]
    HeaderValue { name: String },
}

/// One stored header, read without copying it.
#[derive(Deserialize)]
struct Pair<'a>(#[serde(borrow)] Cow<'a, str>, #[serde(borrow)] Cow<'a, str>);

impl Row {
    /// The headers on the wire: those stored, the two from columns, the id for the duplicate window, and the stream that
    /// must answer.
    ///
    /// Built with fallible conversions only: the client panics on a line break.
    pub(super) fn wire_headers(&self) -> Result<async_nats::HeaderMap, RowError> {
        let stored: Vec<Pair<'_>> = serde_json::from_str(&self.headers)?;
        let mut map = async_nats::HeaderMap::new();
        let mut set = |name: &str, value: &str| {
            let refused = || RowError::HeaderValue { name: name.to_owned() };
            let parsed: async_nats::HeaderValue = value.parse().map_err(|_| refused())?;
            let name: async_nats::HeaderName = name.parse().map_err(|_| refused())?;
            map.insert(name, parsed);
            Ok::<(), RowError>(())
        };
        for Pair(name, value) in &stored {
            set(name, value)?;
        }
        set(headers::CE_TIME, &Timestamp::from_offset(self.occurred_at).to_string())?;
        set(headers::CE_SEQUENCE, &format!("{:020}", self.key_version))?;
        set(headers::NATS_MSG_ID, &self.event_id.to_string())?;
        set(headers::NATS_EXPECTED_STREAM, STREAM)?;
        if let Some(Pair(_, parent)) = stored.iter().find(|Pair(name, _)| name == headers::CE_TRACEPARENT) {
            set(headers::TRACEPARENT, parent)?;
        }
        Ok(map)
    }

    /// Bytes of payload and stored headers.
    pub(super) fn bytes(&self) -> usize {
        self.payload.len() + self.headers.len()
    }
}
