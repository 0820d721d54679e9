//! Request bodies: read whole, checked against the JSON profile, then typed, with every mistake named by its member.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use envelope::ProfileError;
use envelope::profile::{self, Violation};
use futures_util::StreamExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::locate::member_at;
use super::{BODY_BYTES_MAX, FieldError, Problem};

/// How long a client may take to send its body.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// How much of a body that is too large is received to tell its sender so.
const DISCARDED_BYTES_MAX: usize = 16 * BODY_BYTES_MAX;

/// The body of an operation that takes none: nothing at all, or an empty object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoBody {}

/// A body that was read and typed.
#[derive(Debug)]
pub(super) struct Parsed<T> {
    /// What it says.
    pub(super) value: T,
    /// The same however it is spelt: members sorted, no spaces, no escapes that need not be.
    pub(super) canonical: String,
}

/// Reads the whole body.
pub(super) async fn read(body: Body) -> Result<Bytes, Problem> {
    let late = |_| Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the body did not arrive in time");
    tokio::time::timeout(READ_TIMEOUT, collect(body)).await.map_err(late)?
}

/// A client that is still sending does not hear an answer when the connection is closed on it, so what is beyond the limit
/// is taken in, within reason, and thrown away.
async fn collect(body: Body) -> Result<Bytes, Problem> {
    let mut chunks = body.into_data_stream();
    let mut bytes = Vec::new();
    let mut received = 0;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| Problem::bad_request(format!("the body could not be read: {error}")))?;
        received += chunk.len();
        if received <= BODY_BYTES_MAX {
            bytes.extend_from_slice(&chunk);
        } else if received > DISCARDED_BYTES_MAX {
            break;
        }
    }
    if received > BODY_BYTES_MAX { Err(too_large(BODY_BYTES_MAX)) } else { Ok(bytes.into()) }
}

fn too_large(limit: usize) -> Problem {
    let detail = format!("the body has more than {limit} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
}

/// Types a body. An empty one is the empty object, for operations that need nothing.
pub(super) fn parse<T: DeserializeOwned>(headers: &HeaderMap, bytes: &[u8]) -> Result<Parsed<T>, Problem> {
    if bytes.is_empty() {
        let value = serde_json::from_str("{}")
            .map_err(|_| Problem::bad_request("the body is empty, expected a JSON object"))?;
        return Ok(Parsed { value, canonical: "{}".to_owned() });
    }
    check_content_type(headers)?;
    profile::check_within(bytes, super::BODY_BYTES_MAX).map_err(|error| broken_profile(&error, bytes))?;
    let value = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(bytes)).map_err(mistyped)?;
    // A map of serde_json is sorted by key as long as nobody turns on `preserve_order`, which the build checks.
    let canonical = serde_json::from_slice::<Value>(bytes).map_err(Problem::internal)?.to_string();
    Ok(Parsed { value, canonical })
}

/// `application/json`, or a type that is JSON by its suffix, in UTF-8.
fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = given.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
    let is_json = media_type == "application/json"
        || media_type.strip_prefix("application/").is_some_and(|rest| rest.ends_with("+json"));
    let charset = parts.filter_map(|part| part.split_once('=')).find(|(name, _)| name.eq_ignore_ascii_case("charset"));
    let is_utf8 = charset.is_none_or(|(_, charset)| charset.trim_matches('"').eq_ignore_ascii_case("utf-8"));
    if is_json && is_utf8 {
        return Ok(());
    }
    let detail = "the content type must be application/json in UTF-8";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", detail))
}

/// 413 for size, 400 for what is no JSON, 422 for JSON that not every reader of the mesh could hold.
fn broken_profile(error: &ProfileError, bytes: &[u8]) -> Problem {
    let member = || member_at(&String::from_utf8_lossy(bytes), error.offset);
    match &error.violation {
        Violation::TooLarge(_) => too_large(envelope::BODY_BYTES_MAX),
        Violation::DuplicateKey(_) | Violation::Nul | Violation::LoneSurrogate | Violation::NumberRange => {
            Problem::invalid(vec![FieldError::new(member(), error.violation.to_string())])
        }
        _ => Problem::bad_request(error.to_string()),
    }
}

/// A member of the wrong type, a missing or an unknown one.
fn mistyped(error: serde_path_to_error::Error<serde_json::Error>) -> Problem {
    let path = error.path().to_string();
    let text = error.into_inner().to_string();
    // The parser's position means nothing to a caller who built the text with a library.
    let detail = text.rsplit_once(" at line ").map_or(text.as_str(), |(detail, _)| detail);
    let field = match quoted_member(detail) {
        // The path ends at the object around a missing member, and at the member itself when it is unknown.
        Some(name) if path == "." => name.to_owned(),
        Some(name) if path != name && !path.ends_with(&format!(".{name}")) => format!("{path}.{name}"),
        _ => path,
    };
    Problem::invalid(vec![FieldError::new(field, detail)])
}

/// The member that a message of serde is about, when it is missing, unknown or there twice.
fn quoted_member(detail: &str) -> Option<&str> {
    let rest = ["missing field `", "unknown field `", "duplicate field `"]
        .iter()
        .find_map(|prefix| detail.strip_prefix(prefix))?;
    rest.split('`').next()
}

#[cfg(test)]
mod tests;
