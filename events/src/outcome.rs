//! The part that a fact plays in its flow.

use serde::{Deserialize, Serialize};

/// What a fact means for its flow. The undo is named by the effect, not by the failure: only so can a tool decide whether
/// every failing path undoes what happened before on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Begins a flow.
    Entry,
    /// A step that needs no undoing.
    Note,
    /// A business effect that must be undone when the flow fails later.
    Effect {
        /// The fact that undoes it, `<domain>.<fact>`.
        undone_by: &'static str,
    },
    /// The flow cannot succeed any more.
    Failure,
    /// Undoes an effect.
    Undo,
    /// Ends the flow.
    End,
}

/// [`Outcome`] as one word, the form in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// [`Outcome::Entry`]
    Entry,
    /// [`Outcome::Note`]
    Note,
    /// [`Outcome::Effect`]
    Effect,
    /// [`Outcome::Failure`]
    Failure,
    /// [`Outcome::Undo`]
    Undo,
    /// [`Outcome::End`]
    End,
}

impl Outcome {
    /// The outcome without what it refers to.
    pub fn kind(self) -> OutcomeKind {
        match self {
            Self::Entry => OutcomeKind::Entry,
            Self::Note => OutcomeKind::Note,
            Self::Effect { .. } => OutcomeKind::Effect,
            Self::Failure => OutcomeKind::Failure,
            Self::Undo => OutcomeKind::Undo,
            Self::End => OutcomeKind::End,
        }
    }

    /// The fact that undoes this effect.
    pub fn undone_by(self) -> Option<&'static str> {
        match self {
            Self::Effect { undone_by } => Some(undone_by),
            _ => None,
        }
    }
}
