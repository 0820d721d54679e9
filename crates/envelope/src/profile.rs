//! The JSON profile: what a body may be, so that every reader in every language reads the same.
//!
//! Publishers check it before a fact is stored, readers before they decode. The whole body is looked at, also members
//! that no type knows: typed parsers skip those, and what they skip (invalid UTF-8, lone surrogates, nesting a hundred
//! thousand deep) kills the next reader or the database.

mod scan;

use std::fmt;

use crate::limits::{BODY_BYTES_MAX, DEPTH_MAX};

/// The rule that a body breaks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Violation {
    /// More than [`BODY_BYTES_MAX`] bytes; holds how many.
    TooLarge(usize),
    /// A byte order mark in front.
    Bom,
    /// Bytes that are not UTF-8, anywhere.
    InvalidUtf8,
    /// Not JSON by RFC 8259; says what was expected.
    MalformedJson(&'static str),
    /// The top level is not one object.
    NotAnObject,
    /// Nesting beyond [`DEPTH_MAX`].
    TooDeep,
    /// The same member twice in one object; holds the member's name.
    DuplicateKey(String),
    /// U+0000 in a string, raw or escaped.
    Nul,
    /// Half of a surrogate pair, escaped.
    LoneSurrogate,
    /// An integer beyond ±(2^53 - 1), or a number too large for a double.
    NumberRange,
}

/// A broken rule and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{violation} at byte {offset}")]
pub struct ProfileError {
    /// The rule.
    pub violation: Violation,
    /// Offset into the body, in bytes.
    pub offset: usize,
}

impl ProfileError {
    /// A stable code for tables, metrics and people.
    pub fn reason(&self) -> &'static str {
        match self.violation {
            Violation::TooLarge(_) => "too_large",
            Violation::Bom => "bom",
            Violation::InvalidUtf8 => "invalid_utf8",
            Violation::MalformedJson(_) => "malformed_json",
            Violation::NotAnObject => "not_an_object",
            Violation::TooDeep => "too_deep",
            Violation::DuplicateKey(_) => "duplicate_key",
            Violation::Nul => "nul",
            Violation::LoneSurrogate => "lone_surrogate",
            Violation::NumberRange => "number_range",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(bytes) => write!(f, "body of {bytes} bytes, at most {BODY_BYTES_MAX} are allowed,"),
            Self::Bom => f.write_str("byte order mark"),
            Self::InvalidUtf8 => f.write_str("invalid UTF-8"),
            Self::MalformedJson(expected) => write!(f, "malformed JSON, expected {expected},"),
            Self::NotAnObject => f.write_str("the body is not one JSON object"),
            Self::TooDeep => write!(f, "nesting deeper than {DEPTH_MAX}"),
            Self::DuplicateKey(name) => write!(f, "second member named {name:?}"),
            Self::Nul => f.write_str("NUL character in a string"),
            Self::LoneSurrogate => f.write_str("lone surrogate in a string"),
            Self::NumberRange => f.write_str("number out of range"),
        }
    }
}

/// What a scan saw besides a valid body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// Offset of the first null, in bytes.
    pub(crate) first_null: Option<usize>,
}

/// Checks a body against the profile, in one pass and without recursion.
///
/// # Errors
/// The first broken rule, in the order size, byte order mark, UTF-8, then by position.
pub fn check(body: &[u8]) -> Result<(), ProfileError> {
    scan(body, BODY_BYTES_MAX).map(|_| ())
}

/// Checks a document that is no fact, and may be larger than one, against the rest of the profile.
///
/// # Errors
/// As [`check`].
pub fn check_within(body: &[u8], bytes_max: usize) -> Result<(), ProfileError> {
    scan(body, bytes_max).map(|_| ())
}

pub(crate) fn scan(body: &[u8], bytes_max: usize) -> Result<Scanned, ProfileError> {
    if body.len() > bytes_max {
        return Err(ProfileError { violation: Violation::TooLarge(body.len()), offset: bytes_max });
    }
    // UTF-8, and UTF-16 in both byte orders.
    if [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| body.starts_with(mark)) {
        return Err(ProfileError { violation: Violation::Bom, offset: 0 });
    }
    let text = std::str::from_utf8(body)
        .map_err(|error| ProfileError { violation: Violation::InvalidUtf8, offset: error.valid_up_to() })?;
    scan::Scanner::new(text).run()
}

#[cfg(test)]
mod tests;
