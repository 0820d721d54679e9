//! What a fact looks like on the wire: metadata, headers, subjects, derived ids.
//!
//! A fact is a bare JSON object; everything that a reader needs before it looks into that object travels as CloudEvents
//! attributes in NATS headers ([`Metadata`]). The subject ([`Subject`]) repeats the type and the bucket of the key, so
//! that routing and permissions never look into a message. There is one way to read ([`decode`]) and one way to write
//! ([`encode`]): live delivery, redrive, replay and tools all go through them.

mod decode;
mod encode;
mod event;
mod fingerprint;
pub mod headers;
pub mod ids;
mod limits;
mod metadata;
mod number;
mod percent;
pub mod profile;
mod subject;
mod timestamp;

pub use decode::{DecodeError, RawMessage, decode, peek};
pub use encode::{EncodeError, encode};
pub use event::{Event, EventType, EventTypeError, Lift, event_type, is_token};
pub use fingerprint::fingerprint;
pub use limits::{
    BODY_BYTES_MAX, DEPTH_MAX, HEADERS_BYTES_MAX, HEADERS_RESERVED_BYTES, HOPS_MAX, INTEGER_MAX, KEY_BYTES_MAX,
    MESSAGE_BYTES_MAX,
};
pub use metadata::{HeaderError, Metadata, TraceContext};
pub use percent::DecodeValueError;
pub use profile::{ProfileError, Violation};
pub use subject::{BUCKETS, Subject, SubjectError, bucket, subject};
pub use timestamp::{Timestamp, TimestampError};
