//! What makes two messages under one id the same fact.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{EventType, number, profile};

/// SHA-256 over the canonical form of type, subject and data.
///
/// Spelling does not count: order of members, white space, escapes, `1.0` for `1`, a null member for an absent one. Headers
/// other than the type and the subject (`key`) do not count either. A body outside the JSON profile has no canonical form;
/// its bytes stand for it.
pub fn fingerprint(event_type: &EventType, subject: &str, body: &[u8]) -> [u8; 32] {
    let canonical = canonical(body);
    let (kind, data): (&[u8], &[u8]) = match &canonical {
        Some(text) => (b"json", text.as_bytes()),
        None => (b"bytes", body),
    };
    let mut hash = Sha256::new();
    for part in [event_type.to_string().as_bytes(), subject.as_bytes(), kind, data] {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn canonical(body: &[u8]) -> Option<String> {
    profile::check(body).ok()?;
    let text = number::plain_integers(std::str::from_utf8(body).ok()?);
    // A map of serde_json is sorted by key as long as nobody turns on `preserve_order`, which the build checks.
    let mut value: Value = serde_json::from_str(&text).ok()?;
    drop_null_members(&mut value);
    Some(value.to_string())
}

/// Removes members whose value is null: readers treat null and absent alike.
pub(crate) fn drop_null_members(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_null_members);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_null_members),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
