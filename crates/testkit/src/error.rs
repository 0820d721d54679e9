//! What can go wrong while servers are found, started and driven.

use std::fmt;
use std::io;
use std::process::ExitStatus;

use crate::wait::TimedOut;

/// A failure of the test bed itself, never of what is tested.
///
/// `Debug` prints the same text as `Display`, with the causes, so that an `unwrap` in a test shows readable lines.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation on files, sockets or processes was refused by the operating system.
    #[error("cannot {attempt}")]
    Io {
        /// What was tried, as a verb phrase.
        attempt: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A server program is missing and could not be installed; the text is one sentence that names the remedy.
    #[error("{0}")]
    Unavailable(String),
    /// A directory or a setting that the caller chose cannot work; the text is one sentence that says why.
    #[error("{0}")]
    Unusable(String),
    /// A process ended although it should be running.
    #[error("{name} ended with {status}; its last lines:\n{log}")]
    Exited {
        /// The name that the process was given.
        name: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of its output.
        log: String,
    },
    /// A process did not reach the awaited state in time.
    #[error("{name}: {source}; its last lines:\n{log}")]
    NotReady {
        /// The name that the process was given.
        name: String,
        /// What was awaited, and what was seen last.
        source: TimedOut,
        /// The end of its output.
        log: String,
    },
    /// PostgreSQL refused a statement of the test bed.
    #[error("cannot {attempt}")]
    Database {
        /// What was tried, as a verb phrase.
        attempt: String,
        /// The client's error.
        source: sqlx::Error,
    },
    /// The caller's closure could not prepare a template database.
    #[error("cannot prepare the template database \"{template}\"")]
    Prepare {
        /// The template's name.
        template: String,
        /// The closure's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The NATS server or its client refused an operation of the test bed.
    #[error("cannot {attempt}")]
    Nats {
        /// What was tried, as a verb phrase.
        attempt: String,
        /// The client's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The JetStream API answered a request with an error.
    #[error("JetStream refused {subject}: {description} ({code})")]
    JetStream {
        /// The API subject of the request.
        subject: String,
        /// The `err_code` of the answer.
        code: u64,
        /// The text of the answer.
        description: String,
    },
    /// A wait ran out.
    #[error(transparent)]
    TimedOut(#[from] TimedOut),
}

impl Error {
    /// Wraps an [`io::Error`], naming what was tried.
    pub(crate) fn io(attempt: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let attempt = attempt.into();
        move |source| Error::Io { attempt, source }
    }

    /// Wraps an [`sqlx::Error`], naming what was tried.
    pub(crate) fn database(attempt: impl Into<String>) -> impl FnOnce(sqlx::Error) -> Error {
        let attempt = attempt.into();
        move |source| Error::Database { attempt, source }
    }

    /// Wraps any error of the NATS client, naming what was tried.
    pub(crate) fn nats<E>(attempt: impl Into<String>) -> impl FnOnce(E) -> Error
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let attempt = attempt.into();
        move |source| Error::Nats { attempt, source: source.into() }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")?;
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            write!(out, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
