//! Everything about a fact that is not its body.

mod read;

use uuid::Uuid;

use crate::{
    EventType, EventTypeError, Timestamp, headers,
    limits::{HEADERS_BYTES_MAX, HEADERS_RESERVED_BYTES},
    percent,
};

const SPEC_VERSION: &str = "1.0";
const JSON: &str = "application/json";
const SCHEMA_ROOT: &str = "urn:mesh:schema:";
/// What W3C Trace Context asks everyone to carry; more may be dropped.
const TRACESTATE_BYTES_MAX: usize = 512;

/// The attributes of one fact, as its headers carry them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// Identity of the fact, the same however often it is published.
    pub id: Uuid,
    /// Who says it: `urn:mesh:<service>`.
    pub source: String,
    /// What kind of fact it is.
    pub event_type: EventType,
    /// When it happened, by the transaction that wrote it.
    pub time: Timestamp,
    /// What it is about; order holds within a key.
    pub key: String,
    /// Additive edits of the schema that the publisher knew.
    pub revision: u16,
    /// The flow: all facts that descend from one root.
    pub correlation_id: Uuid,
    /// The fact that was reacted to; none on an entry fact.
    pub causation_id: Option<Uuid>,
    /// Gapless version of the key in its source, from 1. 0 while it is not known; then no header is written.
    pub sequence: u64,
    /// `<service>/<subscriber or endpoint>@<build>`.
    pub emitter: String,
    /// Facts between the flow's root and this one.
    pub hops: u16,
    /// Trace of the transaction that wrote the fact.
    pub trace: Option<TraceContext>,
    /// Shared by the two majors of one occurrence.
    pub occurrence_id: Option<Uuid>,
    /// `ce-*` headers that this version does not know: folded name with its prefix, decoded value.
    pub extensions: Vec<(String, String)>,
}

/// A W3C trace context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// `<version>-<trace id>-<parent id>-<flags>`.
    pub traceparent: String,
    /// What tracing vendors added.
    pub tracestate: Option<String>,
}

impl TraceContext {
    /// Whether `traceparent` has the form of version 00 or of a later version that extends it.
    pub fn is_valid(&self) -> bool {
        let hex = |text: &str, len| {
            text.len() == len && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        let set = |text: &str| text.bytes().any(|b| b != b'0');
        let mut parts = self.traceparent.splitn(5, '-');
        let (Some(version), Some(trace), Some(parent), Some(flags)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return false;
        };
        let extended = parts.next().is_some();
        hex(version, 2)
            && version != "ff"
            && hex(trace, 32)
            && set(trace)
            && hex(parent, 16)
            && set(parent)
            && hex(flags, 2)
            && !(extended && version == "00")
            && percent::is_identity(&self.traceparent)
    }
}

/// Why headers cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// A required header is not there.
    #[error("header {0} is missing")]
    Missing(&'static str),
    /// One name, whatever its case, came with two different values, or two headers that must agree do not.
    #[error("header {0} contradicts another header")]
    Contradiction(String),
    /// The value cannot be decoded.
    #[error("header {name} has a value with {why}")]
    Encoding {
        /// The folded name.
        name: String,
        /// What is in the value.
        why: percent::DecodeValueError,
    },
    /// The value decodes to something that this header cannot say.
    #[error("header {name} is {value:?}, expected {expected}")]
    Invalid {
        /// The folded name.
        name: &'static str,
        /// The value as decoded, shortened.
        value: String,
        /// The form that it must have.
        expected: &'static str,
    },
    /// `ce-type` is outside the grammar.
    #[error("header ce-type is no event type")]
    Type(#[from] EventTypeError),
    /// The whole event is in the body (CloudEvents structured mode), which the mesh does not speak.
    #[error("content-type {0:?}: the mesh speaks binary mode, attributes in headers and a bare JSON body")]
    StructuredMode(String),
    /// A value of ours would need percent-encoding, which not every reader undoes; or a name or value of an extension
    /// cannot be written at all.
    #[error("header {0} cannot be published: it must be visible ASCII without % and \", and not empty")]
    NotPlain(String),
    /// The headers leave no room for what the relay adds.
    #[error("headers of {0} bytes: at most {max} may be published", max = HEADERS_BYTES_MAX - HEADERS_RESERVED_BYTES)]
    TooLarge(usize),
}

impl Metadata {
    /// All headers of the envelope, in a fixed order. The relay adds `Nats-*` and the trace context of its own hop.
    ///
    /// Every value that the mesh mints is the same before and after percent-encoding. Foreign text that was received
    /// (extensions, `tracestate`) is encoded where it needs it. A trace context that is not well-formed and a `tracestate`
    /// of more than 512 bytes are left out: tracing never stops a fact.
    ///
    /// # Errors
    /// When a value of ours is empty or would need encoding, an extension's name is no header name, or all of it is too
    /// large.
    pub fn to_headers(&self) -> Result<Vec<(String, String)>, HeaderError> {
        self.event_type.check()?;
        let mut lines = self.required_lines();
        let optional = [
            (headers::CE_CAUSATIONID, self.causation_id.map(|id| id.to_string())),
            (headers::CE_SEQUENCE, (self.sequence > 0).then(|| format!("{:020}", self.sequence))),
            (headers::CE_OCCURRENCEID, self.occurrence_id.map(|id| id.to_string())),
        ];
        lines.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        if let Some((name, _)) = lines.iter().find(|(_, value)| value.is_empty() || !percent::is_identity(value)) {
            return Err(HeaderError::NotPlain(name.clone()));
        }
        self.add_foreign_lines(&mut lines)?;
        let bytes = headers::wire_bytes(lines.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        if bytes > HEADERS_BYTES_MAX - HEADERS_RESERVED_BYTES { Err(HeaderError::TooLarge(bytes)) } else { Ok(lines) }
    }

    fn required_lines(&self) -> Vec<(String, String)> {
        let EventType { major, .. } = self.event_type;
        [
            (headers::CE_SPECVERSION, SPEC_VERSION.to_owned()),
            (headers::CE_ID, self.id.to_string()),
            (headers::CE_SOURCE, self.source.clone()),
            (headers::CE_TYPE, self.event_type.to_string()),
            (headers::CE_TIME, self.time.to_string()),
            (headers::CE_SUBJECT, self.key.clone()),
            (headers::CE_DATACONTENTTYPE, JSON.to_owned()),
            (headers::CONTENT_TYPE, JSON.to_owned()),
            (headers::CE_DATASCHEMA, format!("{SCHEMA_ROOT}{}:{major}:{}", self.event_type.fact(), self.revision)),
            (headers::CE_CORRELATIONID, self.correlation_id.to_string()),
            (headers::CE_PARTITIONKEY, self.key.clone()),
            (headers::CE_EMITTER, self.emitter.clone()),
            (headers::MESH_HOPS, self.hops.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// The headers whose text others made.
    fn add_foreign_lines(&self, lines: &mut Vec<(String, String)>) -> Result<(), HeaderError> {
        if let Some(trace) = self.trace.as_ref().filter(|trace| trace.is_valid()) {
            lines.push((headers::CE_TRACEPARENT.to_owned(), trace.traceparent.clone()));
            let state =
                trace.tracestate.as_ref().filter(|state| is_readable(state)).map(|state| percent::encode(state));
            if let Some(state) = state.filter(|state| state.len() <= TRACESTATE_BYTES_MAX) {
                lines.push((headers::CE_TRACESTATE.to_owned(), state));
            }
        }
        for (name, value) in &self.extensions {
            if !is_extension(name) || !is_readable(value) {
                return Err(HeaderError::NotPlain(name.clone()));
            }
            if lines.iter().any(|(taken, _)| taken == name) {
                return Err(HeaderError::Contradiction(name.clone()));
            }
            lines.push((name.clone(), percent::encode(value)));
        }
        Ok(())
    }
}

/// Whether `name` is a `ce-` header that this version gives no meaning to.
fn is_extension(name: &str) -> bool {
    let attribute = name.strip_prefix("ce-").unwrap_or_default();
    let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.');
    !attribute.is_empty() && attribute.bytes().all(legal) && !headers::ENVELOPE.contains(&name)
}

/// Whether foreign text survives being encoded by us and decoded by a reader.
fn is_readable(value: &str) -> bool {
    !value.is_empty() && !value.chars().any(char::is_control)
}

#[cfg(test)]
mod tests;
