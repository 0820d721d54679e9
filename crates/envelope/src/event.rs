//! What a fact says about itself, and the name under which it travels.

use std::{fmt, str::FromStr};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Turns the body of major `n` into the body of major `n + 1`.
///
/// Pure: no clock, no randomness, no look-ups, so that a log read in ten years lifts to the same value. The error says
/// what in the old body could not be carried over.
pub type Lift = fn(Value) -> Result<Value, String>;

/// A fact: something that happened, owned by one service, immutable.
///
/// `DOMAIN` and `NAME` are durable data: they are in every stored message, subject and permission. Renaming the Rust
/// type changes nothing on the wire; changing one of these makes another fact.
pub trait Event: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The owning service, e.g. `orders`. A [token](is_token).
    const DOMAIN: &'static str;
    /// What happened, past tense, e.g. `order_created`. A [token](is_token).
    const NAME: &'static str;
    /// Version of the meaning and shape; a new one is a new subject. 1 to 999.
    const MAJOR: u16;
    /// Count of additive edits inside the major.
    const REVISION: u16;
    /// `(n, lift)` pairs from older majors, one for each step up to `MAJOR`.
    const LIFTS: &'static [(u16, Lift)] = &[];

    /// What the fact is about. Order is promised between facts of one key.
    fn key(&self) -> String;
}

/// Largest major: the subject token is `v` and at most three digits.
const MAJOR_MAX: u16 = 999;

/// Whether `text` can name a domain or a fact: `^[a-z][a-z0-9_]{0,31}$`.
pub const fn is_token(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.is_empty() || bytes.len() > 32 || !bytes[0].is_ascii_lowercase() {
        return false;
    }
    let mut at = 1;
    while at < bytes.len() {
        if !(bytes[at].is_ascii_lowercase() || bytes[at].is_ascii_digit() || bytes[at] == b'_') {
            return false;
        }
        at += 1;
    }
    true
}

/// The CloudEvents type of a fact, written `<domain>.<fact>.v<major>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventType {
    /// The owning service.
    pub domain: String,
    /// What happened.
    pub name: String,
    /// The version of its meaning.
    pub major: u16,
}

/// Why a text or a triple is not an event type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventTypeError {
    /// Not three parts divided by dots.
    #[error("{0:?} is not of the form <domain>.<fact>.v<major>")]
    Shape(String),
    /// Domain or fact name outside `^[a-z][a-z0-9_]{{0,31}}$`.
    #[error("{0:?} is not a name: it must match ^[a-z][a-z0-9_]{{0,31}}$")]
    Token(String),
    /// Version token outside `^v[1-9][0-9]{{0,2}}$`.
    #[error("{0:?} is not a major version: it must be v1 to v999")]
    Major(String),
}

impl EventType {
    /// The type of `E`. A name outside the grammar does not compile.
    pub fn of<E: Event>() -> Self {
        const { assert!(is_token(E::DOMAIN), "DOMAIN is not a token, see is_token") }
        const { assert!(is_token(E::NAME), "NAME is not a token, see is_token") }
        const { assert!(E::MAJOR >= 1 && E::MAJOR <= MAJOR_MAX, "MAJOR must be 1 to 999") }
        Self { domain: E::DOMAIN.to_owned(), name: E::NAME.to_owned(), major: E::MAJOR }
    }

    /// A type from its parts, checked.
    pub fn new(domain: &str, name: &str, major: u16) -> Result<Self, EventTypeError> {
        let event_type = Self { domain: domain.to_owned(), name: name.to_owned(), major };
        event_type.check()?;
        Ok(event_type)
    }

    /// Checks the grammar again, for values whose public fields were filled in by hand.
    pub fn check(&self) -> Result<(), EventTypeError> {
        for token in [&self.domain, &self.name] {
            if !is_token(token) {
                return Err(EventTypeError::Token(token.clone()));
            }
        }
        if self.major == 0 || self.major > MAJOR_MAX {
            return Err(EventTypeError::Major(format!("v{}", self.major)));
        }
        Ok(())
    }

    /// The name of the fact without its version, `<domain>.<fact>`.
    pub fn fact(&self) -> String {
        format!("{}.{}", self.domain, self.name)
    }

    /// Whether both name the same fact, in whatever major.
    pub fn same_fact(&self, other: &Self) -> bool {
        self.domain == other.domain && self.name == other.name
    }
}

/// The type of `E` as text, e.g. `orders.order_created.v1`.
pub fn event_type<E: Event>() -> String {
    EventType::of::<E>().to_string()
}

/// Parses a version token, `v1` to `v999` without leading zeros.
pub(crate) fn parse_major(token: &str) -> Result<u16, EventTypeError> {
    let refused = || EventTypeError::Major(token.to_owned());
    let digits = token.strip_prefix('v').ok_or_else(refused)?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    match digits.parse() {
        Ok(major) if plain && major <= MAJOR_MAX => Ok(major),
        _ => Err(refused()),
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.v{}", self.domain, self.name, self.major)
    }
}

impl FromStr for EventType {
    type Err = EventTypeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split('.');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(domain), Some(name), Some(version), None) => Self::new(domain, name, parse_major(version)?),
            _ => Err(EventTypeError::Shape(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests;
