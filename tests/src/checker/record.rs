//! What the clients of a run asked for and were told, and what the run did on purpose.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::DeadLetter;

/// Everything that was acknowledged to a client of the run.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// What was paid into each account, in minor units.
    pub deposits: BTreeMap<Uuid, i64>,
    /// How many pieces of each SKU there are.
    pub stocked: BTreeMap<String, i64>,
    /// The accepted orders.
    pub orders: BTreeMap<Uuid, Asked>,
}

/// What was ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Who ordered.
    pub customer_id: Uuid,
    /// What it costs, in minor units.
    pub total: i64,
    /// Pieces per SKU.
    pub pieces: BTreeMap<String, i64>,
}

/// What a run did to the stream on purpose, and what has to follow from it.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// Stream sequences of messages that no service has committed.
    pub forged: BTreeSet<u64>,
    /// The dead letters that these have to end as, and no others.
    pub dead_letters: Vec<DeadLetter>,
}
