//! The pull in use: what it yields, and when the next one is built.

use async_nats::jetstream;
use tokio::time::Instant;

use super::durable::{DurableError, verify};
use super::puller::{Puller, Trouble};
use super::{Consumer, REBUILD, REBUILDS_BEFORE_CLIENT, WATCHDOG_EVERY};
use crate::broker::Broker;
use crate::clock::jittered;
use crate::delivery::Inbox;
use crate::lifecycle::Check;
use crate::telemetry::metrics;

/// The pull in use, or when the next one is built.
pub(super) enum Pull {
    Open(Box<Puller>),
    Closed { failures: u32, due: Instant },
}

/// What comes next from the pull.
pub(super) enum NextStep {
    Message(Box<jetstream::Message>),
    Trouble(Trouble),
    BuildDue,
}

pub(super) async fn next(pull: &mut Pull, broker: &Broker) -> NextStep {
    match pull {
        Pull::Open(puller) => match puller.next(broker.events()).await {
            Ok(message) => NextStep::Message(Box::new(message)),
            Err(trouble) => NextStep::Trouble(trouble),
        },
        Pull::Closed { due, .. } => {
            tokio::time::sleep_until(*due).await;
            NextStep::BuildDue
        }
    }
}

impl<I: Inbox> Consumer<I> {
    pub(super) fn rebuild(&mut self, trouble: &Trouble) {
        let Trouble { reason, detail } = trouble;
        tracing::warn!(consumer = self.name, reason, detail, "building the pull again");
        metrics::consumer_rebuilt(reason);
        // An ended pull is the mark of a dead client: count it as tried often enough to replace that too.
        let failures = if *reason == "ended" { REBUILDS_BEFORE_CLIENT } else { self.fruitless + 1 };
        self.closed(failures);
    }

    /// Ends the pull in order and takes over what still comes for its requests: left behind, that would come again only
    /// after `ack_wait`, behind newer messages of its keys.
    pub(super) async fn finish_pull(&mut self) {
        if let Pull::Open(puller) = &mut self.pull
            && self.broker.events().is_connected()
        {
            let rest = puller.finish().await;
            rest.into_iter().for_each(|message| self.take(message));
        }
    }

    fn closed(&mut self, failures: u32) {
        let pause = jittered(REBUILD.delay(failures), &*self.delivery.context.clock);
        self.pull = Pull::Closed { failures, due: Instant::now() + pause };
    }

    /// Verifies the durable and starts a pull; after several failures with a fresh client.
    pub(super) async fn build(&mut self) {
        let Pull::Closed { failures, .. } = self.pull else { return };
        if !self.broker.events().is_connected() {
            // The client connects again by itself, and then there is no time to lose.
            self.readiness.fails(Check::Consumer, "not connected to NATS");
            self.pull = Pull::Closed { failures, due: Instant::now() + REBUILD.first };
            return;
        }
        if failures >= REBUILDS_BEFORE_CLIENT && self.broker.is_dead().await {
            let generation = self.broker.connection().generation;
            if let Err(error) = self.broker.replace(generation).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "the NATS client could not be replaced");
            }
        }
        let disconnects = self.broker.events().disconnects();
        let connection = self.broker.connection();
        let built = match verify(&connection, self.name, &self.registry).await {
            Ok(consumer) => Puller::begin(&connection, consumer, disconnects)
                .await
                .map_err(|error| DurableError::Pull { name: self.name, why: error.to_string() }),
            Err(error) => Err(error),
        };
        match built {
            Ok(puller) => {
                tracing::info!(consumer = self.name, "pulling");
                self.readiness.holds(Check::Consumer);
                self.last_message = Instant::now();
                self.fruitless = self.fruitless.saturating_add(1);
                self.pull = Pull::Open(Box::new(puller));
            }
            Err(error) => {
                tracing::warn!(%error, failures, "the consumer waits");
                self.readiness.fails(Check::Consumer, error.to_string());
                self.closed(failures.saturating_add(1));
            }
        }
    }

    /// Compares a silent pull with what the server says: messages that wait while nothing comes mean a stalled pull.
    pub(super) async fn watch(&mut self) {
        let Pull::Open(puller) = &self.pull else { return };
        let (waiting, has_room) = match puller.consumer.get_info().await {
            // Without room for more, what is missing is with another replica.
            Ok(info) => (info.num_pending, (info.num_ack_pending as i64) < info.config.max_ack_pending),
            // Whether the pull is alive, its heartbeats tell.
            Err(error) => return tracing::debug!(%error, "the durable could not be looked at"),
        };
        metrics::consumer_pending(waiting);
        let silent = self.last_message.elapsed() >= WATCHDOG_EVERY && self.lanes.len() == 0;
        if waiting > 0 && has_room && silent {
            let detail = format!("{waiting} messages wait at the server and none comes");
            self.rebuild(&Trouble { reason: "stalled", detail });
        }
    }
}
