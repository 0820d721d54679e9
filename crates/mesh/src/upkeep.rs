//! What a process looks after besides its work: partitions ahead of time, gauges, the health of its connections.

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::broker::Broker;
use crate::context::ServiceContext;
use crate::lifecycle::{Check, Lifecycle};
use crate::mesh::Mesh;
use crate::outbox::status;
use crate::telemetry::metrics;

/// How often the gauges are taken.
const GAUGES_EVERY: Duration = Duration::from_secs(5);

/// How often partitions are made.
const PARTITIONS_EVERY: Duration = Duration::from_secs(3_600);

/// How long the database may be silent before its connections are taken for half-open.
const DATABASE_SILENCE_MAX: Duration = Duration::from_secs(60);

/// Partitions ready before their day comes: a week, so that days of failing DDL do not matter.
const PARTITION_DAYS_AHEAD: i32 = 7;

/// Looks after the process until it stops.
pub(crate) async fn run(mesh: Mesh, broker: Arc<Broker>) {
    let lifecycle = mesh.lifecycle().clone();
    let mut gauges = interval(GAUGES_EVERY);
    gauges.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut partitions_due = Instant::now();
    loop {
        tokio::select! {
            _ = gauges.tick() => {}
            () = lifecycle.soft().cancelled() => return,
        }
        if Instant::now() >= partitions_due {
            partitions_due = Instant::now() + PARTITIONS_EVERY;
            ensure_partitions(mesh.pool()).await;
        }
        check_broker(&broker, &lifecycle).await;
        if !answers_in_time(&mesh, &lifecycle).await {
            return;
        }
    }
}

async fn ensure_partitions(pool: &PgPool) {
    for day in 0..=PARTITION_DAYS_AHEAD {
        let made = sqlx::query_scalar!(r#"select mesh.ensure_partitions($1) as "made!""#, day).fetch_one(pool).await;
        match made {
            Ok(made) => tracing::debug!(day, made, "partitions are ready"),
            // Rows go to the default partition meanwhile.
            Err(error) => tracing::warn!(day, %error, "partitions could not be made ahead of time"),
        }
    }
}

/// Asks the broker, and leaves a server that is going to shut down.
pub(crate) async fn check_broker(broker: &Broker, lifecycle: &Lifecycle) {
    if broker.events().take_lame_duck() {
        // The server cuts the connection some time after its notice; this tick comes at a different moment in each process.
        broker.leave_server().await;
    }
    let alive = broker.is_alive().await;
    metrics::broker_connected(alive);
    if alive {
        lifecycle.readiness().holds(Check::Broker);
    } else {
        lifecycle.readiness().fails(Check::Broker, "NATS does not answer");
    }
}

/// Asks the database, and ends the process when it gives neither answer nor error: its connections are half-open, and only
/// new ones help. What was in flight is delivered again.
async fn answers_in_time(mesh: &Mesh, lifecycle: &Lifecycle) -> bool {
    let mut check = tokio::spawn(check_database(mesh.pool().clone(), lifecycle.clone(), Arc::clone(mesh.context())));
    if tokio::time::timeout(DATABASE_SILENCE_MAX, &mut check).await.is_ok() {
        return true;
    }
    tracing::error!(silence = ?DATABASE_SILENCE_MAX, "the database gives neither answer nor error; ending the process");
    lifecycle.kill();
    false
}

/// Takes the gauges of the outbox and of the dead letters, which shows whether the database answers.
async fn check_database(pool: PgPool, lifecycle: Lifecycle, context: Arc<ServiceContext>) {
    metrics::pool_connections(pool.size(), u32::try_from(pool.num_idle()).unwrap_or(u32::MAX));
    match status::gauges(&pool).await {
        Ok(gauges) => {
            lifecycle.readiness().holds(Check::Database);
            context.ops.outbox(gauges);
            metrics::outbox_pending(gauges.pending, gauges.oldest);
            metrics::outbox_failed(gauges.failed);
            metrics::dead_letters(gauges.parked, gauges.dead);
        }
        Err(error) => lifecycle.readiness().fails(Check::Database, format!("the database does not answer: {error}")),
    }
}
