//! What a process without a database looks after besides its work: its connection, its buckets, its gauges.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::KvInbox;
use super::declared::Buckets;
use crate::broker::Broker;
use crate::lifecycle::{Check, Lifecycle};
use crate::telemetry::metrics;
use crate::upkeep::check_broker;

/// How often all of it is looked at.
const EVERY: Duration = Duration::from_secs(5);

/// Looks after the process until it stops.
pub(super) async fn run(buckets: Buckets, inbox: KvInbox, broker: Arc<Broker>, lifecycle: Lifecycle) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = lifecycle.soft().cancelled() => return,
        }
        check_broker(&broker, &lifecycle).await;
        match buckets.check(&broker).await {
            Ok(()) => lifecycle.readiness().holds(Check::Buckets),
            Err(error) => lifecycle.readiness().fails(Check::Buckets, error.to_string()),
        }
        match inbox.letters().counts().await {
            Ok(counts) => metrics::dead_letters(counts.parked, counts.dead),
            Err(error) => tracing::debug!(%error, "the dead letters could not be counted"),
        }
    }
}
