//! A fact to its wire bytes.

use crate::{
    Event,
    profile::{self, ProfileError},
};

/// Why a fact may not be published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The type cannot be written as JSON.
    #[error("the fact cannot be written as JSON: {0}")]
    Serialize(String),
    /// The JSON is outside the profile, or too large.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A null: publishers leave out what they do not know.
    #[error("null at byte {0}: leave the member out instead")]
    Null(usize),
}

/// The body of a fact: JSON inside the profile, without nulls.
///
/// # Errors
/// When the fact cannot be serialised or the result breaks the profile, e.g. text with NUL or more than
/// [`BODY_BYTES_MAX`](crate::BODY_BYTES_MAX) bytes.
pub fn encode<E: Event>(event: &E) -> Result<Vec<u8>, EncodeError> {
    let body = serde_json::to_vec(event).map_err(|error| EncodeError::Serialize(error.to_string()))?;
    match profile::scan(&body, crate::BODY_BYTES_MAX)?.first_null {
        Some(at) => Err(EncodeError::Null(at)),
        None => Ok(body),
    }
}

#[cfg(test)]
mod tests;
