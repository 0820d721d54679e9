//! A letter as its service tells it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// What lists need of a letter. What this version does not know is passed on in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Letter {
    /// Whose; added here, since a service knows only its own.
    #[serde(default)]
    pub(super) service: String,
    pub(super) id: i64,
    pub(super) subscriber: String,
    pub(super) event_id: Uuid,
    pub(super) event_type: String,
    pub(super) key: String,
    pub(super) state: String,
    pub(super) reason: String,
    pub(super) detail: String,
    pub(super) attempts: u32,
    pub(super) kept_at: String,
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

impl Letter {
    /// How it is called.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.service, self.id)
    }
}
