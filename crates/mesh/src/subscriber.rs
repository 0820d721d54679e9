//! What a team writes to react to a fact: the trait, what it receives, what it answers.

use std::future::Future;
use std::time::Duration;

use envelope::{Event, Metadata};

use crate::failure::{Backoff, Failure};
use crate::tx::Tx;

/// One named reaction of one service to one fact.
///
/// With a [`Tx`] the handler runs in a transaction in which the delivery is already claimed in the inbox; what it writes, what it
/// publishes and that claim are committed together, and only then is the fact acknowledged. It may run again for the same
/// fact after a failure or a crash, never after it committed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a subscriber",
    note = "implement `mesh::Subscriber`: an `Event`, a `NAME`, and `async fn handle`"
)]
pub trait Subscriber<Context: Send = Tx>: Send + Sync + 'static {
    /// The fact that this subscriber hears.
    type Event: Event;

    /// Durable data, not code: the inbox remembers settled facts under this name and the ids of published facts are
    /// derived from it. Renaming it makes every retained fact new to the subscriber; treat it as a migration.
    const NAME: &'static str;

    /// How often and how long to try.
    fn policy(&self) -> Policy {
        Policy::default()
    }

    /// Reacts to one fact.
    fn handle(
        &self,
        context: &mut Context,
        received: Received<Self::Event>,
    ) -> impl Future<Output = Result<Handled, Failure>> + Send;

    /// Whether what the handler needs beside its context answers. After [`Failure::Outage`] this is asked about once a
    /// second, and nothing is delivered to the service until it succeeds.
    ///
    /// # Errors
    /// Why it does not answer.
    fn probe(&self) -> impl Future<Output = anyhow::Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

/// One named reaction of one service to many facts at once, with set-based SQL. For the few reactions where that pays: a
/// projection, a counter, a bulk insert.
///
/// A call gets one fact or many, each of another key, in no order that means anything. Everything a [`Subscriber`] is
/// promised holds for each fact of the call; when the call fails, its facts come again one by one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a batch subscriber",
    note = "implement `mesh::BatchSubscriber`: an `Event`, a `NAME`, and `async fn handle`"
)]
pub trait BatchSubscriber: Send + Sync + 'static {
    /// The fact that this subscriber hears.
    type Event: Event;

    /// As [`Subscriber::NAME`].
    const NAME: &'static str;

    /// How often and how long to try.
    fn policy(&self) -> Policy {
        Policy::default()
    }

    /// Reacts to every fact of `batch`: one answer for each, in the same order. Facts are published with
    /// [`Tx::publish_for`], so that each names its cause.
    fn handle(
        &self,
        tx: &mut Tx,
        batch: &[Received<Self::Event>],
    ) -> impl Future<Output = Result<Vec<Handled>, Failure>> + Send;
}

/// A fact as a handler receives it.
#[derive(Debug, Clone)]
pub struct Received<E> {
    /// The fact, decoded and lifted to the newest version that this code knows.
    pub event: E,
    /// Where it comes from: ids, cause, sequence, emitter.
    pub metadata: Metadata,
    /// Which execution of the handler for this fact this is: 1 is the first.
    pub attempt: u32,
}

/// What a handler did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    /// It changed something or published something.
    Effect,
    /// It undid a business effect; the name of the compensation (`refund`, `release`, `cancel`) is counted.
    Compensated(&'static str),
    /// It decided to change nothing; the reason (snake_case) is recorded in the inbox and counted.
    NoEffect(&'static str),
}

/// How often and how long a subscriber tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Executions of the handler before the fact becomes a dead letter. An outage of the database is no execution.
    pub attempts_max: u32,
    /// Delays between executions.
    pub backoff: Backoff,
    /// How long one execution may take before its slot is given to other facts. The execution itself is not
    /// cancelled: if it still commits, the redelivery is a duplicate.
    pub timeout: Duration,
}

impl Default for Policy {
    /// Ten attempts over about five minutes, 30 s each.
    fn default() -> Self {
        Self {
            attempts_max: 10,
            backoff: Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(60) },
            timeout: Duration::from_secs(30),
        }
    }
}
