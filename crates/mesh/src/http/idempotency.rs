//! `Idempotency-Key`: whoever repeats a request gets the first answer again, and the work is done once.
//!
//! The key is claimed by an advisory lock of the transaction that does the work, and found by the row that this
//! transaction stores with its reply. So a second request while the first runs sees the lock, one after it sees the row,
//! and one after a failure sees neither.

use axum::extract::RawPathParams;
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::Problem;
use super::reply::Rendered;
use crate::Tx;

const HEADER: &str = "idempotency-key";

/// Longest key, in characters.
const KEY_LEN_MAX: usize = 255;

/// The key that a client chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key(String);

/// A key and what it is used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) operation: &'static str,
    pub(super) key: Key,
    /// SHA-256 over all that makes two requests the same.
    pub(super) fingerprint: [u8; 32],
}

/// What is known about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// It is ours now, until the transaction ends.
    Nothing,
    /// The reply to the same request.
    Reply(Rendered),
    /// Another transaction holds it.
    Running,
    /// It was used for a request that said something else.
    OtherRequest,
}

impl Found {
    /// The label of the metric.
    pub(super) fn outcome(&self) -> &'static str {
        match self {
            Self::Nothing => "fresh",
            Self::Reply(_) => "replayed",
            Self::Running => "in_progress",
            Self::OtherRequest => "mismatch",
        }
    }
}

impl Key {
    /// The key of a request: 1 to 255 visible ASCII characters, bare or as a quoted string.
    pub(super) fn from_headers(headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        let mut values = headers.get_all(HEADER).iter();
        let Some(value) = values.next() else { return Ok(None) };
        let malformed = |detail: &str| {
            Problem::bad_request(format!("Idempotency-Key {detail}")).with_field("Idempotency-Key", detail)
        };
        if values.next().is_some() {
            return Err(malformed("was sent more than once"));
        }
        let text = value.to_str().ok().map(str::trim);
        let key = text.and_then(|text| if text.starts_with('"') { unquote(text) } else { Some(text.to_owned()) });
        let visible = |key: &String| key.bytes().all(|byte| byte.is_ascii_graphic());
        match key.filter(|key| (1..=KEY_LEN_MAX).contains(&key.len()) && visible(key)) {
            Some(key) => Ok(Some(Self(key))),
            None => Err(malformed("must be 1 to 255 visible ASCII characters")),
        }
    }
}

/// The content of a structured-field string: `\"` and `\\` are the only escapes.
fn unquote(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut key = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => return None,
            '\\' => key.push(characters.next().filter(|escaped| matches!(escaped, '"' | '\\'))?),
            plain => key.push(plain),
        }
    }
    Some(key)
}

/// What makes two requests the same: method, operation, path parameters and the canonical body. Not the headers, and not
/// the spelling.
pub(super) fn fingerprint(method: &str, operation: &str, path: &RawPathParams, canonical_body: &str) -> [u8; 32] {
    let parameters = path.iter().flat_map(|(name, value)| [name, value]);
    let mut hash = Sha256::new();
    for part in [method, operation].into_iter().chain(parameters).chain([canonical_body]) {
        // With its length in front, no part can pass for the end of another.
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// Takes the key for this transaction, or says why not.
pub(super) async fn claim(tx: &mut Tx, claim: &Claim) -> sqlx::Result<Found> {
    let lock = format!("mesh/http\u{1f}{}\u{1f}{}", claim.operation, claim.key.0);
    let held = sqlx::query_scalar!(r#"select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as "held!""#, lock)
        .fetch_one(&mut **tx)
        .await?;
    if !held {
        return Ok(Found::Running);
    }
    // A statement of its own: its snapshot is younger than the lock, so it sees what the last holder committed.
    let stored = sqlx::query!(
        "select fingerprint, status, headers, body from mesh.idempotency where operation = $1 and key = $2",
        claim.operation,
        claim.key.0,
    )
    .fetch_optional(&mut **tx)
    .await?;
    let Some(row) = stored else { return Ok(Found::Nothing) };
    if row.fingerprint != claim.fingerprint {
        return Ok(Found::OtherRequest);
    }
    let undecodable = |source: Box<dyn std::error::Error + Send + Sync>| sqlx::Error::ColumnDecode {
        index: format!("mesh.idempotency ({}, {})", claim.operation, claim.key.0),
        source,
    };
    Ok(Found::Reply(Rendered {
        status: u16::try_from(row.status).map_err(|error| undecodable(error.into()))?,
        headers: serde_json::from_str(&row.headers).map_err(|error| undecodable(error.into()))?,
        body: Bytes::from(row.body),
    }))
}

/// Keeps the reply for the next request with this key.
pub(super) async fn store(tx: &mut Tx, claim: &Claim, root_id: Uuid, reply: &Rendered) -> Result<(), Problem> {
    let status = i16::try_from(reply.status).map_err(Problem::internal)?;
    let headers = serde_json::to_string(&reply.headers).map_err(Problem::internal)?;
    sqlx::query!(
        "insert into mesh.idempotency (operation, key, fingerprint, root_id, status, headers, body)
         values ($1, $2, $3, $4, $5, $6, $7)",
        claim.operation,
        claim.key.0,
        &claim.fingerprint[..],
        root_id,
        status,
        headers,
        &reply.body[..],
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// 409: the first request with this key has not ended.
pub(super) fn in_progress() -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "request-in-progress",
        "a request with this Idempotency-Key is still running; its reply can be had by repeating it",
    )
    .retry_after(std::time::Duration::from_secs(1))
}

/// 422: the key belongs to another request.
pub(super) fn reused() -> Problem {
    let detail = "was used for a request that differs in its path or body";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency-key-reused", format!("this Idempotency-Key {detail}"))
        .with_field("Idempotency-Key", detail)
}

#[cfg(test)]
mod tests;
