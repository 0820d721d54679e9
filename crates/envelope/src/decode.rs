//! The one way from a received message to a typed fact.

use serde_json::Value;

use crate::{
    Event, EventType, HeaderError, Metadata, Subject, bucket,
    fingerprint::drop_null_members,
    number,
    profile::{self, ProfileError},
};

/// A message as it was received; the bytes that are parked, replayed and compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawMessage {
    /// The NATS subject.
    pub subject: String,
    /// All headers, in order, names as they came.
    pub headers: Vec<(String, String)>,
    /// The payload.
    pub body: Vec<u8>,
}

/// Why a message cannot be handled; each is a reason to park it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The headers are not an envelope.
    #[error("malformed headers")]
    Headers(#[from] HeaderError),
    /// The body is outside the JSON profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The subject says something else than the headers.
    #[error("subject {subject:?} does not agree with {expected}")]
    SubjectMismatch {
        /// The subject of the message.
        subject: String,
        /// What the headers ask for.
        expected: String,
    },
    /// Another fact than the one that was asked for.
    #[error("expected {expected}, got {got}")]
    UnexpectedType {
        /// The type of the message.
        got: EventType,
        /// The type of the reader.
        expected: EventType,
    },
    /// A later major than this build knows.
    #[error("major {got} is newer than {known}")]
    NewerMajor {
        /// Of the message.
        got: u16,
        /// The newest that can be read.
        known: u16,
    },
    /// No lift begins at this major.
    #[error("no lift from major {from}")]
    NoLift {
        /// The older major.
        from: u16,
    },
    /// A lift refused the body.
    #[error("lift from major {from} failed: {why}")]
    LiftFailed {
        /// The older major.
        from: u16,
        /// What the lift said.
        why: String,
    },
    /// The JSON is not a body of this fact.
    #[error("bad body: {0}")]
    BadBody(String),
}

impl DecodeError {
    /// A stable code for tables, metrics and people.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Headers(_) => "malformed_headers",
            Self::Profile(error) => error.reason(),
            Self::SubjectMismatch { .. } => "subject_mismatch",
            Self::UnexpectedType { .. } => "unexpected_type",
            Self::NewerMajor { .. } => "newer_major",
            Self::NoLift { .. } => "no_lift",
            Self::LiftFailed { .. } => "lift_failed",
            Self::BadBody(_) => "bad_body",
        }
    }

    /// Whether a later build may well read the message: then it is delayed before it is parked.
    pub fn is_newer(&self) -> bool {
        matches!(self, Self::NewerMajor { .. })
    }
}

/// Reads the headers and checks that the subject agrees with them, without looking at the body.
///
/// # Errors
/// [`DecodeError::Headers`] or [`DecodeError::SubjectMismatch`].
pub fn peek(raw: &RawMessage) -> Result<Metadata, DecodeError> {
    let metadata = Metadata::from_headers(raw.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())))?;
    let bucket = bucket(&metadata.key);
    let agrees = Subject::parse(&raw.subject)
        .is_ok_and(|subject| *subject.event_type() == metadata.event_type && subject.bucket() == bucket);
    if agrees {
        Ok(metadata)
    } else {
        let expected = format!("{} in bucket {bucket}", metadata.event_type);
        Err(DecodeError::SubjectMismatch { subject: raw.subject.clone(), expected })
    }
}

/// Reads a message as a fact `E`: headers, profile, lifts from older majors, body.
///
/// Unknown members are ignored, a null member is an absent one, and an integer may be spelled `1.0` or `1e3`.
///
/// # Errors
/// Whatever makes the message one to park; see [`DecodeError`].
pub fn decode<E: Event>(raw: &RawMessage) -> Result<(Metadata, E), DecodeError> {
    let metadata = peek(raw)?;
    let expected = EventType::of::<E>();
    if !metadata.event_type.same_fact(&expected) {
        return Err(DecodeError::UnexpectedType { got: metadata.event_type, expected });
    }
    let major = metadata.event_type.major;
    if major > E::MAJOR {
        return Err(DecodeError::NewerMajor { got: major, known: E::MAJOR });
    }
    profile::check(&raw.body)?;
    let event = decode_body::<E>(&raw.body, major)?;
    Ok((metadata, event))
}

fn decode_body<E: Event>(body: &[u8], major: u16) -> Result<E, DecodeError> {
    // Nearly every message is current and plainly spelled: no tree is built for it.
    if major == E::MAJOR
        && let Ok(event) = serde_json::from_slice(body)
    {
        return Ok(event);
    }
    let text = std::str::from_utf8(body).map_err(bad_body)?;
    let mut value: Value = serde_json::from_str(&number::plain_integers(text)).map_err(bad_body)?;
    drop_null_members(&mut value);
    for from in major..E::MAJOR {
        let (_, lift) = E::LIFTS.iter().find(|(step, _)| *step == from).ok_or(DecodeError::NoLift { from })?;
        value = lift(value).map_err(|why| DecodeError::LiftFailed { from, why })?;
    }
    serde_json::from_value(value).map_err(bad_body)
}

fn bad_body(error: impl std::fmt::Display) -> DecodeError {
    DecodeError::BadBody(error.to_string())
}

#[cfg(test)]
mod tests;
