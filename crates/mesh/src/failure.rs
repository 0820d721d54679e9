//! How a handler says that it could not do its work, and what that means for the delivery.

use std::fmt;
use std::time::Duration;

use crate::kv::KvError;

/// Why a handler did not settle its fact.
///
/// `?` on any error means *retry*; [`OrReject::or_reject`] means *give this delivery up now*. A handler that has nothing to
/// do says so with [`Handled::NoEffect`](crate::Handled::NoEffect).
#[derive(Debug)]
pub enum Failure {
    /// Run the handler again, after a back-off. Counts as an attempt unless the cause is an outage of the database.
    Retry(anyhow::Error),
    /// Run the handler again soon: another transaction changed the same aggregate. Uses up no attempt.
    Conflict(anyhow::Error),
    /// Something that every delivery needs cannot be reached: deliver nothing until it answers
    /// [`Subscriber::probe`](crate::Subscriber::probe), then run the handler again. Uses up no attempt.
    Outage(anyhow::Error),
    /// Trying again cannot help: keep the fact as a dead letter.
    Reject(anyhow::Error),
}

impl Failure {
    /// What went wrong.
    pub(crate) fn error(&self) -> &anyhow::Error {
        let (Self::Retry(error) | Self::Conflict(error) | Self::Outage(error) | Self::Reject(error)) = self;
        error
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        match (database_error(&error), kv_error(&error)) {
            (Some(database), _) if is_conflict(database) => Self::Conflict(error),
            (_, Some(KvError::Conflict { .. })) => Self::Conflict(error),
            (_, Some(KvError::Unavailable { .. })) => Self::Outage(error),
            _ => Self::Retry(error),
        }
    }
}

/// The database's error under an error, however deep a team's own error types have wrapped it.
pub(crate) fn database_error(error: &anyhow::Error) -> Option<&sqlx::Error> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

/// The bucket's error under an error, likewise.
fn kv_error(error: &anyhow::Error) -> Option<&KvError> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The alternate form prints the chain of causes on one line.
        write!(f, "{:#}", self.error())
    }
}

/// Turns an error into "give this delivery up now".
pub trait OrReject<T> {
    /// Maps an error to [`Failure::Reject`]; an outage of the database or a bucket stays one.
    ///
    /// # Errors
    /// [`Failure::Reject`] with the error as its cause.
    fn or_reject(self) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> OrReject<T> for Result<T, E> {
    fn or_reject(self) -> Result<T, Failure> {
        self.map_err(|error| {
            let error = error.into();
            // Nothing can be said about the work in an outage, so there is nothing to give up.
            match (database_error(&error), kv_error(&error)) {
                (Some(database), _) if is_outage(database) => Failure::Retry(error),
                (_, Some(KvError::Unavailable { .. })) => Failure::Outage(error),
                _ => Failure::Reject(error),
            }
        })
    }
}

/// True when another transaction won a race for the same rows: serialization failure, deadlock, or a unique key that two
/// writers took at once. Running again from a fresh read decides it.
#[must_use]
pub(crate) fn is_conflict(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    matches!(code.as_deref(), Some("40001" | "40P01" | "23505"))
}

/// True when the database could not be reached or was going away, so that nothing can be said about the work itself.
///
/// Classes 08 (connection), 53 (resources) and 57P (operator intervention) of the PostgreSQL error codes, the session's own
/// limits (25P03 and 25P04, which a process meets that was stopped for a while), and the errors of the connection or the
/// pool. Not a protocol error: that is how the client reports a statement that can never be sent.
pub(crate) fn is_outage(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(database) => database.code().is_some_and(|code| {
            let class = ["08", "53", "57P"].iter().any(|class| code.starts_with(class));
            // 53400 is a limit of the configuration: it does not pass.
            (class && code != "53400") || code == "25P03" || code == "25P04"
        }),
        _ => false,
    }
}

/// Exponential back-off: `first`, doubled with every failure, at most `longest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub first: Duration,
    /// The longest delay.
    pub longest: Duration,
}

impl Backoff {
    /// The delay before jitter after `failures` failures in a row (1 is the first).
    #[must_use]
    pub fn delay(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(30);
        self.first.saturating_mul(1 << doublings).min(self.longest)
    }
}
