//! Dead letters of a service without a database: a bucket without an age, one entry for each.
//!
//! The key of a letter is `<state>.<subscriber>.<key>.<event id>`, so that what waits for a key is found by a pattern.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use envelope::RawMessage;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::bucket::{Bucket, Found, KvError, Lifetime};
use super::entry::FailedAttempt;
use crate::dead_letter::{DeadLetter, State};

/// The longest text of a message that goes into the letter itself. A longer one is cut into parts of this size, since a
/// message may be as large as the server takes, and a letter is larger than its message.
const PART_CHARS: usize = 256 * 1024;

/// The longest key that stays readable in the key of the letter.
const KEY_CHARS_MAX: usize = 64;

/// The letters of a service. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Letters(Bucket);

/// A kept delivery, in the members of the table `mesh.dead_letter`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Letter {
    pub(super) subscriber: String,
    pub(super) event_id: Uuid,
    pub(super) event_type: String,
    pub(super) partition_key: String,
    pub(super) correlation_id: Option<Uuid>,
    pub(super) state: String,
    pub(super) reason: String,
    pub(super) detail: String,
    pub(super) attempts: u32,
    pub(super) history: Vec<FailedAttempt>,
    pub(super) behind_event: Option<Uuid>,
    pub(super) stream_sequence: u64,
    pub(super) build: String,
    pub(super) message: Message,
}

/// How many letters there are of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) parked: u64,
    pub(super) dead: u64,
}

/// Where the bytes of the message are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Message {
    /// Here.
    Inline(Bytes),
    /// In so many entries `part.<event id>.<subscriber>.<index>`, the text of the same JSON.
    Parts(usize),
}

/// A message exactly as it was received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bytes {
    subject: String,
    headers: Vec<(String, String)>,
    /// In base64.
    payload: String,
}

impl From<&RawMessage> for Bytes {
    fn from(raw: &RawMessage) -> Self {
        let payload = BASE64_STANDARD.encode(&raw.body);
        Self { subject: raw.subject.clone(), headers: raw.headers.clone(), payload }
    }
}

impl Letters {
    pub(super) fn new(bucket: Bucket) -> Self {
        Self(bucket)
    }

    /// How many letters there are.
    pub(super) async fn counts(&self) -> Result<Counts, KvError> {
        let (parked, dead) = (State::Parked.as_str(), State::Dead.as_str());
        if self.0.is_empty().await? {
            return Ok(Counts::default());
        }
        let counted = |state| self.0.count(format!("{state}.>"));
        Ok(Counts { parked: counted(parked).await?, dead: counted(dead).await? })
    }

    /// The fact of this key that was kept last for the subscriber, if one still is.
    pub(super) async fn last_of_key(&self, subscriber: &str, key: &str) -> Result<Option<Uuid>, KvError> {
        let newest = self.0.newest(&format!("*.{subscriber}.{}.*", token(key))).await?;
        Ok(newest.and_then(|letter| letter.rsplit('.').next()?.parse().ok()))
    }

    /// Keeps a delivery. Doing it again changes nothing.
    pub(super) async fn keep(&self, letter: &DeadLetter<'_>, history: Vec<FailedAttempt>) -> Result<(), KvError> {
        let rest = format!("{}.{}.{}", letter.subscriber, token(letter.key), letter.event_id);
        if self.0.newest(&format!("*.{rest}")).await?.is_some() {
            return Ok(());
        }
        let message = self.message(letter).await?;
        let key = format!("{}.{rest}", letter.state.as_str());
        match self.0.create(&key, &owned(letter, history, message), Lifetime::OfBucket).await {
            Err(KvError::Conflict { .. }) => Ok(()),
            kept => kept.map(drop),
        }
    }

    /// The message as it goes into the letter; its parts are written before the letter that names them.
    async fn message(&self, letter: &DeadLetter<'_>) -> Result<Message, KvError> {
        let bytes = Bytes::from(letter.raw);
        let text = serde_json::to_string(&bytes).unwrap_or_default();
        if text.len() <= PART_CHARS {
            return Ok(Message::Inline(bytes));
        }
        let parts = parts(&text);
        for (index, part) in parts.iter().enumerate() {
            let key = format!("part.{}.{}.{index}", letter.event_id, letter.subscriber);
            match self.0.create(&key, part, Lifetime::OfBucket).await {
                Ok(_) | Err(KvError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Message::Parts(parts.len()))
    }

    /// Takes the letter of a delivery away that turned out to be settled.
    pub(super) async fn take_back(&self, letter: &DeadLetter<'_>) -> Result<(), KvError> {
        let (state, key) = (letter.state.as_str(), token(letter.key));
        let key = format!("{state}.{}.{key}.{}", letter.subscriber, letter.event_id);
        match self.0.get::<Letter>(&key).await? {
            Some(Found { revision, .. }) => self.0.remove(&key, revision).await,
            None => Ok(()),
        }
    }
}

fn owned(letter: &DeadLetter<'_>, history: Vec<FailedAttempt>, message: Message) -> Letter {
    Letter {
        subscriber: letter.subscriber.to_owned(),
        event_id: letter.event_id,
        event_type: letter.event_type.to_owned(),
        partition_key: letter.key.to_owned(),
        correlation_id: letter.correlation_id,
        state: letter.state.as_str().to_owned(),
        reason: letter.reason.to_owned(),
        detail: letter.detail.to_owned(),
        attempts: letter.attempts,
        history,
        behind_event: letter.behind,
        stream_sequence: letter.stream_sequence,
        build: letter.build.to_owned(),
        message,
    }
}

/// The text in pieces that end between characters.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, left) = rest.split_at(rest.floor_char_boundary(PART_CHARS));
        parts.push(part);
        rest = left;
    }
    parts
}

/// The key of a fact as one token of a bucket's key: itself, or its hash when it is long or has other characters.
fn token(key: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !key.is_empty() && key.len() <= KEY_CHARS_MAX && key.bytes().all(is_plain) {
        return key.to_owned();
    }
    let hash: String = Sha256::digest(key).iter().map(|byte| format!("{byte:02x}")).collect();
    // No plain key begins like this.
    format!("={hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_one_token_and_no_two_are_the_same() {
        let keys = ["0195-a_B", "", "a.b", "a*", ">", "grün", &"x".repeat(65), &"x".repeat(66), "a b"];
        let tokens: std::collections::BTreeSet<_> = keys.iter().map(|key| token(key)).collect();
        assert_eq!(tokens.len(), keys.len());
        for token in tokens {
            assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte)), "{token}");
        }
        assert_eq!(token("0195-a_B"), "0195-a_B", "readable as it is");
    }

    #[test]
    fn a_long_text_is_whole_again_when_its_parts_are_joined() {
        let text = "ü".repeat(PART_CHARS) + "x";
        let parts = parts(&text);
        assert!(parts.len() == 3 && parts.iter().all(|part| part.len() <= PART_CHARS));
        assert_eq!(parts.concat(), text);
    }
}
