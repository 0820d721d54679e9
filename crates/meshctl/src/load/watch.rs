//! The ends of orders as the stream tells them, read while they come.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::jetstream::consumer::DeliverPolicy;
use envelope::Timestamp;
use futures_util::StreamExt;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::broker::Broker;
use crate::flows::fact::StoredFact;
use crate::flows::read;
use crate::outcome::Failure;

/// What is kept of one fact: enough to say how its flow ended and when, not its body.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    /// `<domain>.<fact>`.
    pub(super) fact: String,
    /// When it happened.
    pub(super) time: Timestamp,
    /// When it was stored.
    pub(super) stored_at: Timestamp,
    /// Why an order was cancelled.
    pub(super) reason: Option<String>,
}

/// The facts of flows by their id.
pub(super) type Facts = HashMap<Uuid, Vec<Seen>>;

/// A reader of everything that is stored from now on.
pub(super) struct Watched {
    facts: Arc<Mutex<Facts>>,
    reading: JoinHandle<()>,
}

impl Watched {
    /// Begins to read.
    pub(super) async fn begin(broker: &Broker) -> anyhow::Result<Self> {
        let mut messages = read::open(broker, "evt.>", DeliverPolicy::New).await?.messages().await?;
        let facts: Arc<Mutex<Facts>> = Arc::default();
        let read = Arc::clone(&facts);
        let reading = tokio::spawn(async move {
            while let Some(Ok(message)) = messages.next().await {
                if let Ok(fact) = StoredFact::read(&message) {
                    let mut facts = read.lock().unwrap_or_else(PoisonError::into_inner);
                    facts.entry(fact.metadata.correlation_id).or_default().push(Seen::of(&fact));
                }
            }
        });
        Ok(Self { facts, reading })
    }

    /// Everything that was read.
    pub(super) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether more is coming.
    pub(super) fn still_reading(&self) -> anyhow::Result<()> {
        if self.reading.is_finished() {
            Err(Failure::unreachable("the stream ended in the middle of the run"))
        } else {
            Ok(())
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl Seen {
    fn of(fact: &StoredFact) -> Self {
        Self {
            fact: fact.fact(),
            time: fact.metadata.time,
            stored_at: fact.stored_at,
            reason: fact.data["reason"].as_str().map(str::to_owned),
        }
    }
}
