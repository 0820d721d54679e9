//! Pulls messages from the service's durable, runs them in lanes by key, answers the broker by verdict.
//!
//! Everything that was received and is not yet answered is kept alive with progress acknowledgements. A message that has to
//! be tried again waits here, at the head of its lane, so that order per key survives the retry; it goes back to the
//! broker only when the process stops.

mod durable;
mod gate;
mod lanes;
mod message;
mod puller;
mod pulling;
mod sharing;
mod work;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::broker::Broker;
use crate::delivery::{Delivery, Inbox, Registry};
use crate::failure::Backoff;
use crate::lifecycle::Readiness;
use crate::telemetry::metrics;
pub(crate) use durable::{DurableError, verify};
use gate::Gate;
use lanes::Lanes;
use message::Pending;
use pulling::{NextStep, Pull, next};
use sharing::Sharing;
use workers::Workers;

/// Pauses before the pull is built again.
const REBUILD: Backoff = Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(4) };

/// Failed rebuilds in a row after which the client itself is suspected and replaced.
const REBUILDS_BEFORE_CLIENT: u32 = 3;

/// How often messages in hand are kept alive: a third of the shortest `ack_wait` that is accepted.
const PROGRESS_EVERY: Duration = Duration::from_secs(3);

/// How often a silent pull is compared with what the server says is waiting.
const WATCHDOG_EVERY: Duration = Duration::from_secs(10);

/// The delay with which unworked messages go back at shutdown: long enough for this process to be gone.
const HAND_BACK_DELAY: Duration = Duration::from_millis(100);

/// The consumer of one process.
pub(crate) struct Consumer<I: Inbox> {
    name: &'static str,
    broker: Arc<Broker>,
    registry: Registry<I::Context>,
    delivery: Delivery<I>,
    readiness: Readiness,
    gate: Arc<Gate>,
    lanes: Lanes<Pending<I::Context>>,
    workers: Workers<I::Context>,
    sharing: Sharing,
    pull: Pull,
    last_message: Instant,
    /// Pulls in a row that were opened and yielded nothing before they failed.
    fruitless: u32,
}

impl<I: Inbox> Consumer<I> {
    /// A consumer of the durable `name` that runs `concurrency` keys at the same time.
    pub(crate) fn new(
        name: &'static str,
        broker: Arc<Broker>,
        registry: Registry<I::Context>,
        delivery: Delivery<I>,
        readiness: Readiness,
        concurrency: usize,
    ) -> Self {
        let sharing = if I::SHARES { Sharing::new(registry.takes_batches_only()) } else { Sharing::none() };
        Self {
            name,
            broker,
            registry,
            delivery,
            readiness,
            gate: Arc::new(Gate::new()),
            lanes: Lanes::new(),
            workers: Workers::new(concurrency),
            sharing,
            pull: Pull::Closed { failures: 0, due: Instant::now() },
            last_message: Instant::now(),
            fruitless: 0,
        }
    }

    /// Delivers until `soft`; then hands back what was not started and finishes what was.
    pub(crate) async fn run(mut self, soft: CancellationToken) {
        let mut progress = interval(PROGRESS_EVERY);
        let mut watchdog = interval(WATCHDOG_EVERY);
        progress.set_missed_tick_behavior(MissedTickBehavior::Delay);
        watchdog.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !soft.is_cancelled() {
            let warm_at = self.lanes.warm_up(Instant::now());
            self.start_workers();
            metrics::consumer_in_flight(self.lanes.running() as u64);
            self.delivery.context.ops.in_flight(self.lanes.running() as u64);
            tokio::select! {
                () = soft.cancelled() => {}
                next = next(&mut self.pull, &self.broker) => self.follow(next).await,
                Some(ended) = self.workers.next() => self.take_back(ended, &soft).await,
                () = sleep_until(warm_at) => {}
                () = self.gate.opened(), if !self.gate.is_open() => {}
                _ = progress.tick() => self.keep_alive().await,
                _ = watchdog.tick() => self.watch().await,
            }
        }
        self.shut_down(&soft).await;
    }

    async fn follow(&mut self, next: NextStep) {
        match next {
            NextStep::Message(message) => self.take(*message),
            NextStep::Trouble(trouble) => self.rebuild(&trouble),
            NextStep::BuildDue => self.build().await,
        }
    }

    /// Takes a message into its lane.
    fn take(&mut self, message: jetstream::Message) {
        self.last_message = Instant::now();
        self.fruitless = 0;
        let registry = &self.registry;
        let hearing = |incoming: &crate::delivery::Incoming| {
            incoming.subject_type().map(|event_type| registry.hearing(&event_type)).unwrap_or_default()
        };
        match Pending::new(message, hearing) {
            Ok(pending) => {
                let key = pending.incoming.key().to_owned();
                self.lanes.push(&key, pending);
            }
            Err(error) => tracing::error!(%error, "not a message of the durable"),
        }
    }

    async fn keep_alive(&self) {
        // While disconnected nothing takes the reports, and waiting for room would hold up everything else.
        if !self.broker.events().is_connected() {
            return;
        }
        for message in self.workers.in_work() {
            message.in_progress().await;
        }
        for pending in self.lanes.waiting() {
            pending.keep_alive().in_progress().await;
        }
    }

    async fn shut_down(mut self, soft: &CancellationToken) {
        // Before anything is handed back: it would come back to this pull.
        self.finish_pull().await;
        for pending in self.lanes.drain() {
            pending.hand_back(HAND_BACK_DELAY).await;
        }
        while let Some(ended) = self.workers.next().await {
            self.take_back(ended, soft).await;
        }
        for pending in self.lanes.drain() {
            pending.hand_back(HAND_BACK_DELAY).await;
        }
        // Acknowledgements still in the client's buffer would otherwise be lost with the process.
        let flushed = tokio::time::timeout(Duration::from_secs(2), self.broker.connection().client.flush()).await;
        if !matches!(flushed, Ok(Ok(()))) {
            tracing::warn!("the last acknowledgements may not have reached the broker; the inbox absorbs the repeats");
        }
    }
}

async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
