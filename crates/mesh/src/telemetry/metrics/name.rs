//! The names, once: what `/metrics` shows, in which unit, with which labels.

/// What a metric's value means over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; look at its rate.
    Counter,
    /// The current value.
    Gauge,
    /// A distribution over fixed buckets.
    Histogram,
}

/// Everything that is known about a metric before it is measured.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// The name at `/metrics`. Dashboards and alarms of others depend on it.
    pub name: &'static str,
    /// What its value means over time.
    pub kind: Kind,
    /// The labels of each series, all of them bounded sets.
    pub labels: &'static [&'static str],
    /// One sentence for the reader of `/metrics`.
    pub help: &'static str,
}

/// Generates [`Metric`] and its table, so that no variant can be without a definition.
macro_rules! metrics {
    ($($(#[$doc:meta])* $variant:ident: $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        /// Every metric of the mesh.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Metric {
            $(#[doc = $help] $variant,)*
        }

        impl Metric {
            /// All of them, in the order of this file.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name, kind, labels and help of this metric.
            #[must_use]
            pub const fn definition(self) -> Definition {
                match self {
                    $(Self::$variant => Definition {
                        name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help,
                    },)*
                }
            }
        }
    };
}

metrics! {
    OutboxPending: Gauge "outbox_pending_count" []
        "Facts that are committed and not yet acknowledged by the stream";
    OutboxOldestPending: Gauge "outbox_oldest_pending_seconds" []
        "Age of the oldest unacknowledged fact in seconds, 0 when there is none";
    OutboxFailed: Gauge "outbox_failed_count" []
        "Facts that the relay gave up; each holds back its key until it is redriven";
    PublishLatency: Histogram "outbox_publish_latency_seconds" []
        "Seconds from the insert of a fact to its acknowledgement by the stream";
    RelayPublished: Counter "relay_published_total" ["method"]
        "Facts acknowledged by the stream, by how they were sent: batch or single";
    RelayFailures: Counter "relay_failures_total" ["reason"]
        "Publishes that were refused, timed out or could not be recorded";
    RelayLeases: Gauge "relay_leases" []
        "Bucket groups that this process publishes";
    RelayState: Gauge "relay_state" ["state"]
        "1 for the state that the relay of this process is in, 0 for the others";
    Compensations: Counter "saga_compensation_total" ["action"]
        "Business effects that were undone: refunds, releases, cancellations";
    StuckFlows: Gauge "saga_stuck_count" []
        "Flows that are past their deadline and not finished";
    Duplicates: Counter "inbox_duplicates_total" ["subscriber"]
        "Deliveries of facts that the subscriber had settled before";
    InboxLag: Histogram "inbox_lag_seconds" ["subscriber"]
        "Seconds from the moment a fact happened until the subscriber settled it";
    ConsumerPending: Gauge "consumer_pending" []
        "Facts in the stream that are for this service and were not delivered yet";
    ConsumerInFlight: Gauge "consumer_in_flight" []
        "Deliveries that this process is handling";
    ConsumerRebuilds: Counter "consumer_rebuilds_total" ["reason"]
        "Times that the pull consumer or its client was replaced";
    Verdicts: Counter "verdicts_total" ["verdict", "subscriber"]
        "Deliveries by how they ended";
    DeadLetters: Gauge "dead_letter_count" ["state"]
        "Deliveries that were parked or given up and wait for a person";
    Redriven: Counter "dead_letter_redriven_total" ["subscriber"]
        "Dead letters that were run again and are settled";
    RedriveFailures: Counter "dead_letter_redrive_failures_total" ["subscriber"]
        "Executions of dead letters that failed again";
    Discarded: Counter "dead_letter_discarded_total" []
        "Dead letters that an operator gave up for good";
    OutboxRetried: Counter "outbox_retried_total" []
        "Facts that the relay gave up and that an operator put back into the outbox";
    Republished: Counter "reconcile_republished_total" []
        "Facts that the stream had lost and that were published again";
    OpsEventsDropped: Counter "ops_events_dropped_total" []
        "Operational events that could not be told to anybody";
    ReconcileChecked: Gauge "reconcile_checked_count" []
        "Facts that the last comparison of the outbox with the stream has looked at";
    ReconcileVerifiedAge: Gauge "reconcile_verified_age_seconds" []
        "Seconds since everything that was acknowledged was last known to be in the stream or published again";
    ReconcileFailures: Counter "reconcile_failures_total" []
        "Comparisons of the outbox with the stream that could not be finished";
    JanitorRows: Counter "janitor_rows_removed_total" ["table"]
        "Rows that were deleted because they are no longer needed";
    JanitorPartitions: Counter "janitor_partitions_removed_total" ["table"]
        "Partitions that were dropped because nothing in them is needed any more";
    JanitorFailures: Counter "janitor_failures_total" ["reason"]
        "Removals that were put off: held by somebody, or the retention, the stream or the database not known";
    SequenceGaps: Counter "key_sequence_gap_total" ["subscriber"]
        "Facts that arrived before an earlier fact of the same key";
    BrokerConnected: Gauge "broker_connected" []
        "1 while the connection to NATS answers, else 0";
    BrokerReconnects: Counter "broker_reconnects_total" []
        "Times that the connection to NATS was made again";
    HttpRequests: Histogram "http_request_seconds" ["operation", "status"]
        "Seconds from the head of a request to the head of its reply";
    IdempotentRequests: Counter "http_idempotency_total" ["operation", "outcome"]
        "Requests with an Idempotency-Key: fresh, replayed, in_progress or mismatch";
    PoolWait: Histogram "database_pool_wait_seconds" []
        "Seconds that a transaction waited for a connection";
    PoolConnections: Gauge "database_pool_connections" ["state"]
        "Connections to the database, idle and in use";
    BuildInfo: Gauge "build_info" ["service", "build", "instance"]
        "1, labelled with what is running";
    ProcessCpu: Counter "process_cpu_seconds_total" []
        "User and system time of the process in whole seconds";
    ProcessMemory: Gauge "process_resident_memory_bytes" []
        "Memory of the process that is in RAM, in bytes";
    ProcessFiles: Gauge "process_open_fds" []
        "Open file descriptors of the process";
}
