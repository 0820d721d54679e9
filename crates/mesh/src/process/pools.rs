//! Connections to the database.

use std::time::Duration;

use anyhow::Context;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use crate::clock::jittered;
use crate::config::Config;
use crate::context::ServiceContext;
use crate::failure::{Backoff, is_outage};
use crate::lifecycle::{Check, Lifecycle};
use crate::schema;
use crate::service::Service;

/// Connections of the relay: one reads, two move, one keeps the leases.
const RELAY_CONNECTIONS: u32 = 4;

/// How long a request or a delivery waits for a connection.
const WORK_PATIENCE: Duration = Duration::from_secs(5);

/// The same for the relay, which nobody competes with: a longer wait means that the database is away.
const RELAY_PATIENCE: Duration = Duration::from_secs(2);

/// How long a start waits for a database that cannot be reached.
const DATABASE_PATIENCE: Duration = Duration::from_secs(30);

/// Pauses between tries to reach the database at the start.
const CONNECT: Backoff = Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(2) };

/// The relay's statements have one right plan each, and the planner cannot know it. It passes long arrays, which are
/// compared by hash only in a plan made for their values; from those arrays the planner concludes that hardly a row
/// is left, and would read and sort a whole backlog where the first rows of the primary key are wanted.
pub(crate) const RELAY_PLANS: [(&str, &str); 4] = [
    ("plan_cache_mode", "force_custom_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_sort", "off"),
];

/// The connections of a process: the relay's are its own, so that neither starves the other.
pub(super) struct Pools {
    pub(super) work: PgPool,
    pub(super) relay: PgPool,
}

impl Pools {
    /// Makes them, and waits for the database.
    pub(super) async fn connect(config: &Config, context: &ServiceContext) -> anyhow::Result<Self> {
        let options = |name: &str| config.database_url.connect_options(&format!("{} {name}", context.name));
        let pool = |options, most: u32, patience| {
            PgPoolOptions::new().max_connections(most).acquire_timeout(patience).connect_lazy_with(options)
        };
        let relay = options("relay").options(RELAY_PLANS);
        let pools = Self {
            work: pool(options("work"), config.database_connections_max, WORK_PATIENCE),
            relay: pool(relay, RELAY_CONNECTIONS, RELAY_PATIENCE),
        };
        pools.reach(context).await.with_context(|| format!("reach the database {:?}", config.database_url))?;
        Ok(pools)
    }

    /// Waits for the database; a wrong password or a missing database is no reason to wait.
    async fn reach(&self, context: &ServiceContext) -> sqlx::Result<()> {
        let begun = tokio::time::Instant::now();
        let mut failures = 0;
        loop {
            match self.work.acquire().await {
                Ok(_) => return Ok(()),
                Err(error) if is_outage(&error) && begun.elapsed() < DATABASE_PATIENCE => {
                    failures += 1;
                    tracing::warn!(%error, "the database cannot be reached yet");
                    tokio::time::sleep(jittered(CONNECT.delay(failures), &*context.clock)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the tables are new enough.
    pub(super) async fn check_schema(&self, service: &Service, lifecycle: &Lifecycle) -> anyhow::Result<()> {
        let mut connection = self.work.acquire().await?;
        schema::check(&mut connection, service.name, &service.migrations).await?;
        lifecycle.readiness().holds(Check::Schema);
        lifecycle.readiness().holds(Check::Database);
        Ok(())
    }
}
