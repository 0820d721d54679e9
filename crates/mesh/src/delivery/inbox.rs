//! What deliveries need of a service's memory. The decisions are the same whether that is a database or a bucket.

use std::fmt::Debug;
use std::future::Future;

use envelope::DecodeError;
use uuid::Uuid;

use super::execution::Execution;
use super::registry::Prepared;
use super::{Broken, Next, Unit, Verdict};
use crate::dead_letter::DeadLetter;
use crate::failure::Failure;

/// Where a service remembers its deliveries: claims, attempts, dead letters. Clones share it.
///
/// Everything here is about one delivery, which is a fact and a subscriber. No method may be cancelled half-way.
pub(crate) trait Inbox: Clone + Debug + Send + Sync + 'static {
    /// What a handler works in.
    type Context: Send + 'static;

    /// Which execution begins; written down first when an earlier one failed or may have happened.
    fn begin(
        &self,
        next: Next,
        event_id: Uuid,
        subscriber: &'static str,
    ) -> impl Future<Output = Result<Begun, Outage>> + Send;

    /// Writes down that execution number `attempt` failed, and why.
    fn record_failure(
        &self,
        event_id: Uuid,
        subscriber: &'static str,
        attempt: u32,
        error: &str,
    ) -> impl Future<Output = Result<(), Outage>> + Send;

    /// Keeps a delivery as a dead letter. False when it was settled or kept before.
    fn keep(&self, letter: &DeadLetter<'_>) -> impl Future<Output = Result<bool, Outage>> + Send;

    /// Claims the delivery, runs the handler, settles the delivery.
    fn run(self, execution: Execution, handler: Box<dyn Prepared<Self::Context>>)
    -> impl Future<Output = Ended> + Send;

    /// Whether several deliveries can be settled by one commit.
    const SHARES: bool = false;

    /// Runs many first executions with one commit. None for each that has to run alone, which tells nothing about it.
    fn run_together(
        self,
        units: Vec<Unit<Self::Context>>,
    ) -> impl Future<Output = Result<Vec<Option<Verdict>>, Broken>> + Send {
        std::future::ready(Ok(vec![None; units.len()]))
    }

    /// Whether it answers.
    fn probe(&self) -> impl Future<Output = Result<(), Outage>> + Send;
}

/// What precedes an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It is this one: 1 is the first.
    Attempt(u32),
    /// Another process may be executing the handler for this delivery.
    Elsewhere,
}

/// The memory could not be reached, so nothing can be said about the delivery; in its own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Outage(pub(crate) String);

/// How an execution ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Committed, or found settled.
    Settled(Verdict),
    /// An earlier fact of the key is in the way.
    Behind(Uuid),
    /// Somebody else has it in work, or may have.
    Elsewhere,
    /// Something that is needed went away; nothing can be said about the message.
    Outage(String),
    /// The message is none that the subscriber can read.
    Undecodable(DecodeError),
    /// The handler did not settle it.
    Failed(Failure),
}
