//! The header names of the envelope, in the one spelling that is emitted.
//!
//! NATS keeps the case of names and matches them case-sensitively: a `nats-msg-id` in lower case is not seen by the server.
//! Readers fold `ce-*`, `content-type` and `mesh-*` to lower case.

/// CloudEvents version, always `1.0`.
pub const CE_SPECVERSION: &str = "ce-specversion";
/// Id of the event, a lower-case hyphenated UUID.
pub const CE_ID: &str = "ce-id";
/// Who says it: `urn:mesh:<service>`.
pub const CE_SOURCE: &str = "ce-source";
/// `<domain>.<fact>.v<major>`.
pub const CE_TYPE: &str = "ce-type";
/// When it happened, `YYYY-MM-DDThh:mm:ss.SSSZ`.
pub const CE_TIME: &str = "ce-time";
/// What it is about: the key.
pub const CE_SUBJECT: &str = "ce-subject";
/// Media type of the body, `application/json`.
pub const CE_DATACONTENTTYPE: &str = "ce-datacontenttype";
/// The same again in the name that other CloudEvents libraries look for.
pub const CONTENT_TYPE: &str = "content-type";
/// `urn:mesh:schema:<domain>.<fact>:<major>:<revision>`; informational.
pub const CE_DATASCHEMA: &str = "ce-dataschema";
/// Id of the flow.
pub const CE_CORRELATIONID: &str = "ce-correlationid";
/// Id of the event that was reacted to; absent on entry facts.
pub const CE_CAUSATIONID: &str = "ce-causationid";
/// The key whose bucket is in the subject.
pub const CE_PARTITIONKEY: &str = "ce-partitionkey";
/// The gapless version of the key in its source, 20 digits.
pub const CE_SEQUENCE: &str = "ce-sequence";
/// `<service>/<subscriber or endpoint>@<build>`.
pub const CE_EMITTER: &str = "ce-emitter";
/// W3C trace context of the transaction that wrote the fact.
pub const CE_TRACEPARENT: &str = "ce-traceparent";
/// Vendor part of [`CE_TRACEPARENT`].
pub const CE_TRACESTATE: &str = "ce-tracestate";
/// Shared by the two majors of one occurrence while both are published.
pub const CE_OCCURRENCEID: &str = "ce-occurrenceid";
/// Depth of the causation chain, 0 on entry facts.
pub const MESH_HOPS: &str = "mesh-hops";
/// Run id of a replay; absent on live traffic.
pub const MESH_REPLAY: &str = "mesh-replay";
/// Deduplication id for the server, equal to [`CE_ID`]. Added by the relay.
pub const NATS_MSG_ID: &str = "Nats-Msg-Id";
/// The stream that must store the message, `EVT`. Added by the relay.
pub const NATS_EXPECTED_STREAM: &str = "Nats-Expected-Stream";
/// Trace context of one hop. Added by the relay.
pub const TRACEPARENT: &str = "traceparent";
/// Vendor part of [`TRACEPARENT`]. Added by the relay.
pub const TRACESTATE: &str = "tracestate";

/// Every header that the envelope gives a meaning to.
pub const ENVELOPE: [&str; 18] = [
    CE_SPECVERSION,
    CE_ID,
    CE_SOURCE,
    CE_TYPE,
    CE_TIME,
    CE_SUBJECT,
    CE_DATACONTENTTYPE,
    CONTENT_TYPE,
    CE_DATASCHEMA,
    CE_CORRELATIONID,
    CE_CAUSATIONID,
    CE_PARTITIONKEY,
    CE_SEQUENCE,
    CE_EMITTER,
    MESH_HOPS,
    CE_TRACEPARENT,
    CE_TRACESTATE,
    CE_OCCURRENCEID,
];

/// How many bytes NATS uses to write these headers: the version line, one line for each, and the empty line.
pub fn wire_bytes<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> usize {
    const FRAME: usize = "NATS/1.0\r\n\r\n".len();
    const LINE: usize = ": \r\n".len();
    headers.into_iter().fold(FRAME, |sum, (name, value)| sum + name.len() + value.len() + LINE)
}
