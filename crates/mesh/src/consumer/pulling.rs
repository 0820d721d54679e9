//! The pull in use: what it yields, and when the next one is built.

use async_nats::jetstream;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull::{self, MessagesErrorKind};
use futures_util::{FutureExt, StreamExt};
use tokio::time::Instant;

use super::durable::{self, verify};
use super::{Consumer, REBUILD, REBUILDS_BEFORE_CLIENT, WATCHDOG_EVERY};
use crate::clock::jittered;
use crate::lifecycle::Check;
use crate::telemetry::metrics;

/// The pull in use, or when the next one is built.
pub(super) enum Pull {
    Open(Box<Open>),
    Closed { failures: u32, due: Instant },
}

/// A running pull and the durable behind it.
pub(super) struct Open {
    pub(super) consumer: PullConsumer,
    pub(super) stream: pull::Stream,
}

/// What comes next from the pull.
pub(super) enum NextStep {
    Yielded(Option<Box<Result<jetstream::Message, pull::MessagesError>>>),
    BuildDue,
}

pub(super) async fn next(pull: &mut Pull) -> NextStep {
    match pull {
        Pull::Open(open) => NextStep::Yielded(open.stream.next().await.map(Box::new)),
        Pull::Closed { due, .. } => {
            tokio::time::sleep_until(*due).await;
            NextStep::BuildDue
        }
    }
}

/// The label under which a rebuild is counted.
pub(super) fn reason(kind: MessagesErrorKind) -> &'static str {
    match kind {
        MessagesErrorKind::MissingHeartbeat => "missing_heartbeat",
        MessagesErrorKind::ConsumerDeleted => "consumer_deleted",
        MessagesErrorKind::NoResponders => "no_responders",
        MessagesErrorKind::RequestLimitExceeded => "request_limit",
        MessagesErrorKind::Pull | MessagesErrorKind::PushBasedConsumer | MessagesErrorKind::Other => "error",
    }
}

impl Consumer {
    pub(super) fn rebuild(&mut self, reason: &'static str, detail: &str) {
        tracing::warn!(consumer = self.name, reason, detail, "building the pull again");
        metrics::consumer_rebuilt(reason);
        // An ended pull is the mark of a dead client: count it as tried often enough to replace that too.
        let failures = if reason == "ended" { REBUILDS_BEFORE_CLIENT } else { self.fruitless + 1 };
        self.take_over_buffered();
        self.closed(failures);
    }

    /// Takes what was delivered to this process and not looked at yet: left behind, it would come again only after the
    /// acknowledgement wait, behind newer messages of its keys.
    pub(super) fn take_over_buffered(&mut self) {
        let pull = std::mem::replace(&mut self.pull, Pull::Closed { failures: 0, due: Instant::now() });
        let Pull::Open(mut open) = pull else { return };
        while let Some(Some(Ok(message))) = open.stream.next().now_or_never() {
            self.take(message);
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
        let connection = self.broker.connection();
        let built = match verify(&connection, self.name, &self.registry).await {
            Ok(consumer) => durable::pull(&consumer, self.name).await.map(|stream| Box::new(Open { consumer, stream })),
            Err(error) => Err(error),
        };
        match built {
            Ok(open) => {
                tracing::info!(consumer = self.name, "pulling");
                self.readiness.holds(Check::Consumer);
                self.last_message = Instant::now();
                self.fruitless = self.fruitless.saturating_add(1);
                self.pull = Pull::Open(open);
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
        let Pull::Open(open) = &self.pull else { return };
        let (waiting, has_room) = match open.consumer.get_info().await {
            // Without room for more, what is missing is with another replica.
            Ok(info) => (info.num_pending, (info.num_ack_pending as i64) < info.config.max_ack_pending),
            Err(error) => return self.rebuild("no_info", &error.to_string()),
        };
        metrics::consumer_pending(waiting);
        let silent = self.last_message.elapsed() >= WATCHDOG_EVERY && self.lanes.len() == 0;
        if waiting > 0 && has_room && silent {
            self.rebuild("stalled", &format!("{waiting} messages wait at the server and none comes"));
        }
    }
}
