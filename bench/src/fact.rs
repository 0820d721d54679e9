//! The fact that is published: a body of about 500 bytes, the size that the limits were measured with.

use envelope::Event;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Something that happened, of a realistic size.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Happened {
    /// What it is about.
    pub(crate) id: Uuid,
    /// Makes the body as large as that of an order with some lines.
    pub(crate) text: String,
}

impl Event for Happened {
    const DOMAIN: &'static str = "bench";
    const NAME: &'static str = "happened";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 1;

    fn key(&self) -> String {
        self.id.to_string()
    }
}

/// How many keys the facts are spread over.
const KEYS: usize = 5_000;

impl Happened {
    /// Number `n` of a run; keys repeat every 5,000 facts.
    pub(crate) fn numbered(n: usize) -> Self {
        Self { id: Uuid::from_u128((n % KEYS) as u128 + 1), text: "x".repeat(440) }
    }

    /// Number `n` of a run; each has a key of its own, as the first facts of flows have.
    pub(crate) fn of_its_own(n: usize) -> Self {
        Self { id: Uuid::from_u128(n as u128 + 1), text: "x".repeat(440) }
    }
}
