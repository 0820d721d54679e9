//! What is measured: one function per thing, so that names and labels exist in one place.
//!
//! Values go to the recorder of the process; without one they go nowhere, so library code and tests may measure freely.
#![expect(clippy::disallowed_macros, reason = "the one place where metric names meet the macros")]

mod exposition;
mod name;

use std::time::Duration;

use ::metrics::{counter, gauge, histogram};

pub use exposition::{Exposition, InstallError, install};
pub use name::{Definition, Kind, Metric};

/// How the relay sent a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishMethod {
    /// In an atomic batch.
    Batch,
    /// On its own.
    Single,
}

/// What the relay of this process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayState {
    /// Not started, or told to stop.
    Off,
    /// Waiting for facts or for leases.
    Idle,
    /// Publishing.
    Publishing,
    /// Facts are waiting and none could be published for a while.
    Stalled,
}

impl RelayState {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Off, "off"), (Self::Idle, "idle"), (Self::Publishing, "publishing"), (Self::Stalled, "stalled")];
}

fn add(metric: Metric, count: u64) {
    counter!(metric.definition().name).increment(count);
}

fn set(metric: Metric, value: f64) {
    gauge!(metric.definition().name).set(value);
}

fn observe(metric: Metric, elapsed: Duration) {
    histogram!(metric.definition().name).record(elapsed.as_secs_f64());
}

/// A count as the number of a gauge. Exact below 2^53.
fn exact(count: u64) -> f64 {
    count as f64
}

/// Sets how many facts wait in the outbox and how long the oldest of them has.
pub fn outbox_pending(count: u64, oldest: Duration) {
    set(Metric::OutboxPending, exact(count));
    set(Metric::OutboxOldestPending, oldest.as_secs_f64());
}

/// Sets how many facts the relay has given up.
pub fn outbox_failed(count: u64) {
    set(Metric::OutboxFailed, exact(count));
}

/// Records how long a fact took from its insert to its acknowledgement.
pub fn publish_latency(elapsed: Duration) {
    observe(Metric::PublishLatency, elapsed);
}

/// Counts acknowledged facts.
pub fn relay_published(method: PublishMethod, facts: u64) {
    let method = match method {
        PublishMethod::Batch => "batch",
        PublishMethod::Single => "single",
    };
    counter!(Metric::RelayPublished.definition().name, "method" => method).increment(facts);
}

/// Counts a publish that did not end in a recorded acknowledgement.
pub fn relay_failed(reason: &'static str) {
    counter!(Metric::RelayFailures.definition().name, "reason" => reason).increment(1);
}

/// Counts operational events that nobody was told.
pub fn ops_events_dropped(events: u64) {
    counter!(Metric::OpsEventsDropped.definition().name).increment(events);
}

/// Sets how many bucket groups this process publishes.
pub fn relay_leases(count: u64) {
    set(Metric::RelayLeases, exact(count));
}

/// Sets what the relay is doing.
pub fn relay_state(current: RelayState) {
    for (state, label) in RelayState::ALL {
        let value = if state == current { 1.0 } else { 0.0 };
        gauge!(Metric::RelayState.definition().name, "state" => label).set(value);
    }
}

/// Makes the compensations of a service visible at 0, so that an alarm on their rate sees the first one.
pub fn compensations_declared(actions: &[&'static str]) {
    for action in actions {
        counter!(Metric::Compensations.definition().name, "action" => *action).increment(0);
    }
}

/// Counts a business effect that was undone (`refund`, `release`, `cancel`).
pub fn compensated(action: &'static str) {
    counter!(Metric::Compensations.definition().name, "action" => action).increment(1);
}

/// Sets how many flows are past their deadline.
pub fn stuck_flows(count: u64) {
    set(Metric::StuckFlows, exact(count));
}

/// Makes the counters of a subscriber visible at 0.
pub fn subscriber_declared(subscriber: &'static str, verdicts: &[&'static str]) {
    counter!(Metric::Duplicates.definition().name, "subscriber" => subscriber).increment(0);
    counter!(Metric::SequenceGaps.definition().name, "subscriber" => subscriber).increment(0);
    counter!(Metric::Redriven.definition().name, "subscriber" => subscriber).increment(0);
    counter!(Metric::RedriveFailures.definition().name, "subscriber" => subscriber).increment(0);
    for verdict in verdicts {
        counter!(Metric::Verdicts.definition().name, "verdict" => *verdict, "subscriber" => subscriber).increment(0);
    }
}

/// Counts a delivery of a fact that was settled before.
pub fn duplicate(subscriber: &'static str) {
    counter!(Metric::Duplicates.definition().name, "subscriber" => subscriber).increment(1);
}

/// Records how long after it happened a fact was settled.
pub fn inbox_lag(subscriber: &'static str, lag: Duration) {
    histogram!(Metric::InboxLag.definition().name, "subscriber" => subscriber).record(lag.as_secs_f64());
}

/// Counts how a delivery ended.
pub fn verdict(verdict: &'static str, subscriber: &'static str) {
    counter!(Metric::Verdicts.definition().name, "verdict" => verdict, "subscriber" => subscriber).increment(1);
}

/// Counts a fact that came before an earlier fact of its key.
pub fn sequence_gap(subscriber: &'static str) {
    counter!(Metric::SequenceGaps.definition().name, "subscriber" => subscriber).increment(1);
}

/// Sets how many facts wait in the stream for this service.
pub fn consumer_pending(count: u64) {
    set(Metric::ConsumerPending, exact(count));
}

/// Sets how many deliveries are being handled.
pub fn consumer_in_flight(count: u64) {
    set(Metric::ConsumerInFlight, exact(count));
}

/// Counts a replacement of the pull consumer or its client.
pub fn consumer_rebuilt(reason: &'static str) {
    counter!(Metric::ConsumerRebuilds.definition().name, "reason" => reason).increment(1);
}

/// Sets how many deliveries wait for a person.
pub fn dead_letters(parked: u64, dead: u64) {
    gauge!(Metric::DeadLetters.definition().name, "state" => "parked").set(exact(parked));
    gauge!(Metric::DeadLetters.definition().name, "state" => "dead").set(exact(dead));
}

/// Counts a dead letter that is settled after all.
pub fn redriven(subscriber: &'static str) {
    counter!(Metric::Redriven.definition().name, "subscriber" => subscriber).increment(1);
}

/// Counts an execution of a dead letter that failed again. Only subscribers of this build run, so the set is bounded.
pub fn redrive_failed(subscriber: &'static str) {
    counter!(Metric::RedriveFailures.definition().name, "subscriber" => subscriber).increment(1);
}

/// Counts dead letters that an operator gave up for good.
pub fn discarded(letters: u64) {
    add(Metric::Discarded, letters);
}

/// Counts facts that went back into the outbox.
pub fn outbox_retried(facts: u64) {
    add(Metric::OutboxRetried, facts);
}

/// Counts facts that the stream had lost and that were published again.
pub fn republished(facts: u64) {
    add(Metric::Republished, facts);
}

/// Sets how much the last comparison of the outbox with the stream looked at, and how old its word is.
pub fn reconciled(checked: u64, seconds_ago: Option<f64>) {
    set(Metric::ReconcileChecked, exact(checked));
    if let Some(seconds) = seconds_ago {
        set(Metric::ReconcileVerifiedAge, seconds);
    }
}

/// Counts a comparison of the outbox with the stream that could not be finished.
pub fn reconcile_failed() {
    add(Metric::ReconcileFailures, 1);
}

/// Counts rows that were deleted because they are no longer needed.
pub fn janitor_deleted(table: &'static str, rows: u64) {
    counter!(Metric::JanitorRows.definition().name, "table" => table).increment(rows);
}

/// Counts a partition that was dropped because nothing in it is needed.
pub fn janitor_dropped(table: &'static str) {
    counter!(Metric::JanitorPartitions.definition().name, "table" => table).increment(1);
}

/// Counts something that could not be removed this time.
pub fn janitor_failed(reason: &'static str) {
    counter!(Metric::JanitorFailures.definition().name, "reason" => reason).increment(1);
}

/// Sets whether the broker answers.
pub fn broker_connected(connected: bool) {
    set(Metric::BrokerConnected, f64::from(u8::from(connected)));
}

/// Counts a connection to the broker that was made again.
pub fn broker_reconnected() {
    add(Metric::BrokerReconnects, 1);
}

/// Records one HTTP exchange. `operation` is the method and the route's template, never a path with ids.
pub fn http_request(operation: &str, status: u16, elapsed: Duration) {
    let labels = [("operation", operation.to_owned()), ("status", status.to_string())];
    histogram!(Metric::HttpRequests.definition().name, &labels).record(elapsed.as_secs_f64());
}

/// Counts a request with an `Idempotency-Key` by how the key was found.
pub fn idempotent_request(operation: &'static str, outcome: &'static str) {
    let name = Metric::IdempotentRequests.definition().name;
    counter!(name, "operation" => operation, "outcome" => outcome).increment(1);
}

/// Records how long a transaction waited for its connection.
pub fn pool_wait(elapsed: Duration) {
    observe(Metric::PoolWait, elapsed);
}

/// Sets the size of the connection pool.
pub fn pool_connections(size: u32, idle: u32) {
    gauge!(Metric::PoolConnections.definition().name, "state" => "idle").set(f64::from(idle));
    gauge!(Metric::PoolConnections.definition().name, "state" => "used").set(f64::from(size.saturating_sub(idle)));
}

/// Says what is running.
pub fn build_info(service: &'static str, build: &'static str, instance: String) {
    let name = Metric::BuildInfo.definition().name;
    gauge!(name, "service" => service, "build" => build, "instance" => instance).set(1.0);
}

/// Sets what the process uses of its machine.
fn process(usage: super::process::Usage) {
    counter!(Metric::ProcessCpu.definition().name).absolute(usage.cpu_seconds);
    set(Metric::ProcessMemory, exact(usage.resident_bytes));
    set(Metric::ProcessFiles, exact(usage.open_files));
}

#[cfg(test)]
mod tests;
