//! What became of one delivery to one subscriber, as data.

use std::time::Duration;

use uuid::Uuid;

use crate::subscriber::Handled;

/// The outcome of one delivery. Each kind is counted by itself, never merged with another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Committed: the inbox row, what the handler changed, the facts that it published.
    Handled,
    /// Committed, and a business effect was undone by it.
    Compensated(&'static str),
    /// Committed, and the handler decided to change nothing, for this reason.
    NoEffect(&'static str),
    /// Settled by an earlier delivery.
    Duplicate,
    /// No subscriber of this service hears the type.
    Foreign,
    /// Not settled; try again after the delay.
    Retry(Retry),
    /// Kept with its bytes until a person, a deployment or an earlier fact lets it go on.
    Parked(ParkReason),
    /// Given up and kept with its bytes.
    Dead(DeadReason),
}

/// Why and when a delivery runs again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// The wait before the next execution.
    pub after: Duration,
    /// What went wrong.
    pub cause: RetryCause,
}

/// What went wrong with a delivery that will be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryCause {
    /// The handler failed, panicked, or took too long; an attempt is used up.
    Failure,
    /// The database, or something else that every delivery needs, could not be reached; no attempt is used up.
    Outage,
    /// A version of the fact that this build does not know yet; no attempt is used up.
    NewerVersion,
    /// An execution that took too long, or one of another process, has not ended yet; no attempt is used up.
    Running,
}

/// Why a delivery was parked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParkReason {
    /// It cannot be decoded; the code says what is wrong (`malformed`, `bad_body` ...).
    Undecodable(&'static str),
    /// Its version is newer than this build, for longer than the configured window.
    NewerVersion,
    /// An earlier fact of the same key is parked or dead for this subscriber.
    Behind(Uuid),
    /// The flow went through more reactions than allowed.
    Loop,
}

/// Why a delivery was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadReason {
    /// The handler said that trying again cannot help.
    Rejected,
    /// Every attempt failed.
    AttemptsExhausted,
}

impl Verdict {
    /// The value of the `verdict` label.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Handled | Self::Compensated(_) => "handled",
            Self::NoEffect(_) => "no_effect",
            Self::Duplicate => "duplicate",
            Self::Foreign => "foreign",
            Self::Retry(_) => "retry",
            Self::Parked(_) => "parked",
            Self::Dead(_) => "dead",
        }
    }

    /// What the log line adds to the label.
    #[must_use]
    pub fn detail(&self) -> &'static str {
        match self {
            Self::NoEffect(reason) | Self::Compensated(reason) => reason,
            Self::Parked(reason) => reason.code(),
            Self::Dead(reason) => reason.code(),
            Self::Retry(retry) => retry.cause.code(),
            Self::Handled | Self::Duplicate | Self::Foreign => "",
        }
    }

    /// Whether the message needs no further delivery for this subscriber.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !matches!(self, Self::Retry(_))
    }
}

impl From<Handled> for Verdict {
    /// What is committed with what a handler did.
    fn from(handled: Handled) -> Self {
        match handled {
            Handled::Effect => Self::Handled,
            Handled::Compensated(action) => Self::Compensated(action),
            Handled::NoEffect(reason) => Self::NoEffect(reason),
        }
    }
}

impl RetryCause {
    /// The code in logs.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Outage => "outage",
            Self::NewerVersion => "newer_version",
            Self::Running => "running",
        }
    }
}

impl ParkReason {
    /// The code stored with the dead letter.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Undecodable(code) => code,
            Self::NewerVersion => "newer_version",
            Self::Behind(_) => "behind",
            Self::Loop => "loop",
        }
    }

    /// The dead letter that this delivery waits behind.
    #[must_use]
    pub fn behind(&self) -> Option<Uuid> {
        match self {
            Self::Behind(event) => Some(*event),
            _ => None,
        }
    }
}

impl DeadReason {
    /// The code stored with the dead letter.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::AttemptsExhausted => "attempts_exhausted",
        }
    }
}
