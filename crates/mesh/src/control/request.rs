//! Requests and why they are refused, in the codes that people know from HTTP.

use serde::de::DeserializeOwned;

use crate::dead_letter::OperationError;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// It cannot be understood.
    #[error("{0}")]
    Bad(String),
    /// What it is about does not exist.
    #[error("{0}")]
    NotFound(String),
    /// It is not what was agreed to, or not any more.
    #[error("{0}")]
    Conflict(String),
    /// It could not be done; asking again may help.
    #[error("{0}")]
    Failed(String),
}

impl Refused {
    pub(super) const fn code(&self) -> usize {
        match self {
            Self::Bad(_) => 400,
            Self::NotFound(_) => 404,
            Self::Conflict(_) => 409,
            Self::Failed(_) => 500,
        }
    }

    pub(super) fn failed(error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::warn!(error, "a control request failed");
        Self::Failed(line(&crate::delivery::describe(error)))
    }
}

impl From<sqlx::Error> for Refused {
    fn from(error: sqlx::Error) -> Self {
        Self::failed(&error)
    }
}

impl From<OperationError> for Refused {
    fn from(error: OperationError) -> Self {
        let text = error.to_string();
        match error {
            OperationError::Unknown(_) => Self::NotFound(text),
            OperationError::Incomplete(_) => Self::Bad(text),
            OperationError::UnknownToken(_)
            | OperationError::Expired
            | OperationError::Changed
            | OperationError::Taken(_) => Self::Conflict(text),
            OperationError::Database(_) => Self::failed(&error),
        }
    }
}

/// The request; an empty one asks for nothing in particular.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|error| Refused::Bad(line(&format!("the request cannot be read: {error}"))))
}

/// A header takes one line.
fn line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}
