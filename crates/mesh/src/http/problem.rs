//! What went wrong, as RFC 9457 tells it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::PublishError;
use crate::failure::{is_conflict, is_outage};

/// Media type of a problem.
const MEDIA_TYPE: &str = "application/problem+json";

/// Namespace of our problem types.
const TYPE_ROOT: &str = "urn:mesh:problem:";

/// How long a client waits before it tries again what could not be done now.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A request that was not done, and why.
///
/// `?` on a database error gives the right one: a lost race runs the operation again, an unreachable database is 503 with
/// `Retry-After`, all else is 500 with its cause in the log and not in the reply.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    slug: &'static str,
    detail: String,
    instance: Option<String>,
    errors: Vec<FieldError>,
    retry_after: Option<Duration>,
    race: Option<Race>,
    source: Option<Arc<anyhow::Error>>,
}

/// One member of a request that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// Where it is: `lines[0].quantity`, or the name of a parameter or header.
    pub field: String,
    /// What is wrong with it.
    pub detail: String,
}

/// A race with another transaction that this one lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Race {
    /// Running again from a fresh read decides it.
    Serialization,
    /// A unique key was taken. When running again meets it again, it was no race.
    UniqueKey,
    /// The answer to a COMMIT was lost. The idempotency key tells the next run whether it happened.
    UnknownCommit,
}

impl FieldError {
    /// An error at `field`.
    pub fn new(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), detail: detail.into() }
    }
}

impl Problem {
    pub(super) fn new(status: StatusCode, slug: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            slug,
            detail: detail.into(),
            instance: None,
            errors: Vec::new(),
            retry_after: None,
            race: None,
            source: None,
        }
    }

    /// 404: nothing has that id.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", detail)
    }

    /// 409: the resource is in a state that does not allow it.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", detail)
    }

    /// 422: well-formed, but some members cannot be used.
    #[must_use]
    pub fn invalid(errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [only] => format!("{}: {}", only.field, only.detail),
            several => format!("{} members of the request cannot be used", several.len()),
        };
        Self { errors, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail) }
    }

    /// 400: cannot be understood.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", detail)
    }

    /// 503 with `Retry-After`: not now.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail).retry_after(RETRY_AFTER)
    }

    /// 500: our fault. The cause goes to the log.
    pub fn internal(cause: impl Into<anyhow::Error>) -> Self {
        let problem = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the request failed inside the service");
        problem.caused_by(cause)
    }

    /// 500 for a panic. Its message goes to the log.
    #[expect(clippy::needless_pass_by_value, reason = "what a caught panic comes as")]
    pub(super) fn panicked(panic: Box<dyn Any + Send>) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Self::internal(anyhow::anyhow!("a handler panicked: {}", text.unwrap_or("no message")))
    }

    /// Adds a member that cannot be used.
    #[must_use]
    pub fn with_field(mut self, field: impl Into<String>, detail: impl Into<String>) -> Self {
        self.errors.push(FieldError::new(field, detail));
        self
    }

    /// The status of the reply.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    pub(super) fn at(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    pub(super) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    pub(super) fn lost(mut self, race: Race) -> Self {
        self.race = Some(race);
        self
    }

    pub(super) fn race(&self) -> Option<Race> {
        self.race
    }

    /// The cause, for the log.
    pub(super) fn cause(&self) -> Option<&anyhow::Error> {
        self.source.as_deref()
    }

    fn caused_by(mut self, cause: impl Into<anyhow::Error>) -> Self {
        self.source = Some(Arc::new(cause.into()));
        self
    }

    pub(super) fn document(&self) -> Document<'_> {
        Document {
            kind: format!("{TYPE_ROOT}{}", self.slug),
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
            instance: self.instance.as_deref(),
            errors: &self.errors,
        }
    }
}

/// The members of RFC 9457, and `errors`.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    #[serde(rename = "type")]
    kind: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [FieldError],
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // A document of strings and numbers always serialises; an empty body would still carry the status.
        let body = serde_json::to_vec(&self.document()).unwrap_or_default();
        let mut response = (self.status, [(header::CONTENT_TYPE, MEDIA_TYPE)], body).into_response();
        if let Some(delay) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(delay.as_secs()));
        }
        // The outermost layer names the instance and logs the cause.
        response.extensions_mut().insert(self);
        response
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.detail)
    }
}

impl std::error::Error for Problem {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|cause| &**cause as &(dyn std::error::Error + 'static))
    }
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        if is_outage(&error) {
            return Self::unavailable("the database does not answer").caused_by(error);
        }
        let race = is_conflict(&error).then(|| {
            let unique = error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation);
            if unique { Race::UniqueKey } else { Race::Serialization }
        });
        Self { race, ..Self::internal(error) }
    }
}

impl From<PublishError> for Problem {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::TooLarge { .. } => {
                let detail = "the request is too large to be told to other services";
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail).caused_by(error)
            }
            _ => Self::internal(error),
        }
    }
}

impl From<anyhow::Error> for Problem {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<Self>().or_else(|error| error.downcast::<sqlx::Error>().map(Self::from)) {
            Ok(problem) => problem,
            Err(error) => match error.downcast::<PublishError>() {
                Ok(error) => error.into(),
                Err(error) => Self::internal(error),
            },
        }
    }
}

#[cfg(test)]
mod tests;
