//! The NATS subject of a fact: `evt.<domain>.<fact>.v<major>.<bucket>`.
//!
//! The bucket, not the key, is in the subject: the number of subjects stays bounded however many orders there are, and no
//! business id gets into server logs and permissions.

use std::fmt;

use crate::{Event, EventType, EventTypeError, event::parse_major, limits::KEY_BYTES_MAX, percent};

/// How many buckets keys are spread over. Frozen: changing it would split every key's history over two subjects.
pub const BUCKETS: u32 = 64;

const ROOT: &str = "evt";
const FNV_OFFSET_BASIS: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// FNV-1a, 32 bits.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(FNV_OFFSET_BASIS, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(FNV_PRIME))
}

/// The bucket of a key: FNV-1a 32 of its UTF-8 bytes modulo [`BUCKETS`], the same as the NATS server's `partition()`.
pub fn bucket(key: &str) -> u32 {
    fnv1a(key.as_bytes()) % BUCKETS
}

/// A subject that was built or parsed by the rules; nothing else formats subjects.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subject {
    text: String,
    event_type: EventType,
    bucket: u32,
}

/// Why there is no subject.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    /// The type is outside its grammar.
    #[error("bad event type in subject")]
    Type(#[from] EventTypeError),
    /// The key is empty, too long, or would not travel unchanged in a header.
    #[error("bad key {0:?}: it must be 1 to {KEY_BYTES_MAX} visible ASCII characters without % and \"")]
    Key(String),
    /// Not five tokens that begin with `evt`.
    #[error("{0:?} is not of the form evt.<domain>.<fact>.v<major>.<bucket>")]
    Shape(String),
    /// The last token is not a bucket.
    #[error("{0:?} is not a bucket: it must be 0 to 63 without leading zeros")]
    Bucket(String),
}

/// The subject on which a fact `E` about `key` is published.
pub fn subject<E: Event>(key: &str) -> Result<Subject, SubjectError> {
    Subject::new(&EventType::of::<E>(), key)
}

impl Subject {
    /// The subject of a fact of this type about this key.
    ///
    /// # Errors
    /// When the type is outside its grammar or the key could not be written into a header as it is.
    pub fn new(event_type: &EventType, key: &str) -> Result<Self, SubjectError> {
        event_type.check()?;
        if key.is_empty() || key.len() > KEY_BYTES_MAX || !percent::is_identity(key) {
            return Err(SubjectError::Key(key.to_owned()));
        }
        Ok(Self::build(event_type.clone(), bucket(key)))
    }

    /// Reads a subject back.
    ///
    /// # Errors
    /// When any token is outside the grammar; wildcards never parse.
    pub fn parse(text: &str) -> Result<Self, SubjectError> {
        let tokens: Vec<&str> = text.split('.').collect();
        let [ROOT, domain, name, version, bucket_token] = tokens[..] else {
            return Err(SubjectError::Shape(text.to_owned()));
        };
        let event_type = EventType::new(domain, name, parse_major(version)?)?;
        let bucket = parse_bucket(bucket_token).ok_or_else(|| SubjectError::Bucket(bucket_token.to_owned()))?;
        Ok(Self::build(event_type, bucket))
    }

    fn build(event_type: EventType, bucket: u32) -> Self {
        let text = format!("{ROOT}.{event_type}.{bucket}");
        Self { text, event_type, bucket }
    }

    /// The text that goes to the server.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The last token, 0 to 63.
    pub fn bucket(&self) -> u32 {
        self.bucket
    }

    /// The tokens between root and bucket.
    pub fn event_type(&self) -> &EventType {
        &self.event_type
    }
}

fn parse_bucket(token: &str) -> Option<u32> {
    let bucket: u32 = token.parse().ok().filter(|bucket| *bucket < BUCKETS)?;
    // The text must be the one that `partition()` writes: no sign, no leading zero.
    (bucket.to_string() == token).then_some(bucket)
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
