//! The task that tells: a heartbeat each second, and events as they come.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use envelope::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};
use uuid::Uuid;

use super::heartbeat::{Identity, Outbox, Reach};
use super::{OpsEvent, kept, position};
use crate::broker::Broker;
use crate::context::ServiceContext;
use crate::delivery::Registry;
use crate::lifecycle::Lifecycle;

/// Between heartbeats.
const EVERY: Duration = Duration::from_secs(1);

/// How often kept deliveries are counted.
const KEPT_EVERY: Duration = Duration::from_secs(5);

/// How long a message may wait for room in the client.
const ROOM_WITHIN: Duration = Duration::from_millis(200);

/// Facts that wait longer than this are not merely a burst.
const STALLED_AFTER_SECONDS: f64 = 30.0;

/// The subject of a service's heartbeats; its events are one token below.
fn subject(service: &str) -> String {
    format!("mesh.ops.{service}")
}

/// What the task works with.
pub(crate) struct Beat {
    broker: Arc<Broker>,
    context: Arc<ServiceContext>,
    lifecycle: Lifecycle,
    /// The service's database, to count dead letters in.
    pool: Option<PgPool>,
    identity: Identity,
}

impl Identity {
    /// Of a process that hears what is in `registry`.
    fn new<C>(registry: &Registry<C>, started_at: Timestamp) -> Self {
        let mut heard: Vec<String> =
            registry.iter().map(|subscriber| format!("{} {}\n", subscriber.name(), subscriber.event_type())).collect();
        heard.sort();
        let hash = Sha256::digest(heard.concat());
        Self {
            contract: hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect(),
            subscribers: registry.iter().map(|subscriber| subscriber.name()).collect(),
            started_at,
        }
    }
}

/// An event and who tells it.
#[derive(Serialize)]
struct Told<'a> {
    kind: &'static str,
    service: &'static str,
    build: &'static str,
    instance: Uuid,
    at: Timestamp,
    #[serde(flatten)]
    event: &'a OpsEvent,
}

/// Tells until the process stops.
pub(crate) async fn run(beat: Beat) {
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut counting = Counting::default();
    let (mut number, mut stalled) = (0, false);
    let ops = &beat.context.ops;
    while !beat.lifecycle.soft().is_cancelled() {
        tokio::select! {
            _ = tick.tick() => {
                number += 1;
                counting.go_on(&beat);
                beat.tell_heartbeat(number, &mut stalled).await;
                let now = beat.context.clock.now();
                for event in ops.take_counted() {
                    ops.emit(now, event);
                }
            }
            () = ops.news() => {}
            () = beat.lifecycle.soft().cancelled() => {}
        }
        beat.tell_events().await;
    }
}

impl Beat {
    /// Of a process that hears what is in `heard`, and counts dead letters in `pool` if it has one.
    pub(crate) fn new<C>(
        context: &Arc<ServiceContext>,
        lifecycle: &Lifecycle,
        broker: &Arc<Broker>,
        pool: Option<PgPool>,
        heard: &Registry<C>,
    ) -> Self {
        let (context, broker) = (Arc::clone(context), Arc::clone(broker));
        let identity = Identity::new(heard, context.clock.now());
        Self { broker, context, lifecycle: lifecycle.clone(), pool, identity }
    }

    async fn tell_heartbeat(&self, number: u64, stalled: &mut bool) {
        let ops = &self.context.ops;
        let client = self.broker.connection().client;
        let connected = self.broker.events().is_connected();
        let hears = !self.identity.subscribers.is_empty();
        let position = if connected && hears {
            position::look(&client, self.context.name, &*self.context.clock).await
        } else {
            None
        };
        let heartbeat = ops.heartbeat(&self.context, &self.identity, number, position, self.reach());
        if let Some(event) = heartbeat.outbox.as_ref().and_then(|outbox| stall(outbox, stalled)) {
            ops.emit(heartbeat.at, event);
        }
        // Nobody misses one heartbeat: the next one says everything again.
        self.publish(&client, subject(self.context.name), &heartbeat).await;
    }

    async fn tell_events(&self) {
        let events = self.context.ops.take_events();
        let client = self.broker.connection().client;
        let mut lost = 0;
        for (at, event) in &events {
            let told = Told {
                kind: "event",
                service: self.context.name,
                build: self.context.build,
                instance: self.context.instance,
                at: *at,
                event,
            };
            if !self.publish(&client, format!("{}.events", subject(self.context.name)), &told).await {
                lost += 1;
            }
        }
        if lost > 0 {
            tracing::debug!(lost, "operational events were not told");
            self.context.ops.dropped(lost);
        }
    }

    /// Plain NATS, without an acknowledgement. Returns whether the client took it.
    async fn publish(&self, client: &Client, subject: String, content: &(impl Serialize + Sync)) -> bool {
        // While disconnected nothing takes it, and waiting for room would hold up everything behind.
        if !self.broker.events().is_connected() {
            return false;
        }
        let Ok(body) = serde_json::to_vec(content) else { return false };
        matches!(tokio::time::timeout(ROOM_WITHIN, client.publish(subject, body.into())).await, Ok(Ok(())))
    }

    /// The database, if there is one, and the broker.
    fn reach(&self) -> (Option<Reach>, Reach) {
        let report = self.lifecycle.readiness().report();
        let of = |name: &str| {
            let check = report.checks.iter().find(|check| check.name == name)?;
            Some(Reach { ok: check.ok, detail: check.detail.clone() })
        };
        let unknown = Reach { ok: false, detail: Some("not checked yet".to_owned()) };
        (of("database"), of("broker").unwrap_or(unknown))
    }
}

/// Counts kept deliveries beside the heartbeats, so that a slow database makes none of them late.
#[derive(Default)]
struct Counting {
    running: Option<JoinHandle<()>>,
    begun: Option<Instant>,
}

impl Counting {
    fn go_on(&mut self, beat: &Beat) {
        let due = self.begun.is_none_or(|begun| begun.elapsed() >= KEPT_EVERY);
        let busy = self.running.as_ref().is_some_and(|running| !running.is_finished());
        let Some(pool) = beat.pool.clone().filter(|_| due && !busy) else { return };
        let context = Arc::clone(&beat.context);
        self.begun = Some(Instant::now());
        self.running = Some(tokio::spawn(async move {
            match kept::look(&pool).await {
                Ok(kept) => context.ops.kept(kept),
                Err(error) => tracing::debug!(%error, "dead letters could not be counted"),
            }
        }));
    }
}

/// The event that facts wait too long, when that begins.
fn stall(outbox: &Outbox, stalled: &mut bool) -> Option<OpsEvent> {
    let now = outbox.oldest_seconds >= STALLED_AFTER_SECONDS;
    let begins = now && !*stalled;
    *stalled = now;
    begins.then(|| OpsEvent::RelayStalled {
        oldest_seconds: outbox.oldest_seconds,
        unsent: outbox.unsent,
        last_error: outbox.last_error.as_ref().map(|last| last.error.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_told_once_for_each_time_that_it_begins() {
        let mut stalled = false;
        let mut told = |oldest_seconds: f64| {
            let outbox = Outbox { unsent: 3, oldest_seconds, failed: 0, taken_seconds_ago: 0.0, last_error: None };
            stall(&outbox, &mut stalled).is_some()
        };
        let expected = [(29.9, false), (30.0, true), (31.0, false), (0.0, false), (45.0, true), (46.0, false)];
        for (oldest, is_told) in expected {
            assert_eq!(told(oldest), is_told, "{oldest}");
        }
    }
}
