//! Real servers for a run: PostgreSQL and nats-server with durable settings, and the service under measurement.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context;
use async_nats::jetstream;
use async_nats::jetstream::consumer::{PullConsumer, pull};
use mesh::Service;
use mesh::config::{Config, RelayMode};
use mesh::testing::{self, Running};
use serde_json::json;
use sqlx::PgPool;
use testkit::{Nats, NatsOptions, Postgres, PostgresOptions};

use crate::fact::Happened;

/// Whether nats-server syncs every message to disk before it acknowledges it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// `sync_interval: always`, as shipped.
    Always,
    /// The server's own default.
    Default,
}

impl Sync {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Always => "sync always",
            Self::Default => "default sync",
        }
    }
}

/// The servers of one run.
pub(crate) struct Rig {
    postgres: Postgres,
    pub(crate) nats: Nats,
    pub(crate) pool: PgPool,
}

const DATABASE: &str = "bench";

impl Rig {
    /// Starts both servers, with an empty stream and an empty migrated database.
    pub(crate) async fn start(sync: Sync) -> anyhow::Result<Self> {
        let postgres = Postgres::start(PostgresOptions::new()).await?;
        postgres.create_role_database(DATABASE, DATABASE).await?;
        let options = NatsOptions::new();
        let nats = Nats::start(if sync == Sync::Default { options.default_sync() } else { options }).await?;
        let declared = tempfile::tempdir()?;
        std::fs::write(declared.path().join("stream.json"), stream().to_string())?;
        std::fs::create_dir(declared.path().join("consumers"))?;
        nats.apply(declared.path()).await?;
        let url = postgres.url_for(DATABASE, DATABASE);
        testing::migrate(&service(), &url).await?;
        let pool = PgPool::connect(&url).await?;
        Ok(Self { postgres, nats, pool })
    }

    fn config(&self, relay: RelayMode) -> anyhow::Result<Config> {
        let url = self.postgres.url_for(DATABASE, DATABASE);
        let mut config = Config::new(url.parse().map_err(anyhow::Error::msg)?, self.nats.url());
        config.process.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        config.relay = relay;
        Ok(config)
    }

    /// The service with its relay inside.
    pub(crate) async fn service(&self) -> anyhow::Result<Running> {
        Running::start(service(), self.config(RelayMode::Inside)?).await
    }

    /// Only the relay.
    pub(crate) async fn relay(&self) -> anyhow::Result<Running> {
        Running::start_relay(service(), self.config(RelayMode::Inside)?).await
    }

    /// Commits `rows` facts to the outbox with no relay running.
    pub(crate) async fn fill(&self, rows: usize) -> anyhow::Result<()> {
        self.fill_with(rows, Happened::numbered).await
    }

    /// Commits facts of this make to the outbox with no relay running.
    pub(crate) async fn fill_with(&self, rows: usize, make: fn(usize) -> Happened) -> anyhow::Result<()> {
        let writer = Running::start(service(), self.config(RelayMode::Off)?).await?;
        let facts: Vec<Happened> = (0..rows).map(make).collect();
        for chunk in facts.chunks(1_000) {
            writer.publish(chunk).await.context("fill the outbox")?;
        }
        writer.stop().await
    }

    /// A service that consumes and whose own facts stay in its outbox.
    pub(crate) async fn consumer(&self, service: Service) -> anyhow::Result<Running> {
        Running::start(service, self.config(RelayMode::Off)?).await
    }

    /// A fresh durable over all facts of the backlog.
    pub(crate) async fn durable(&self, name: &str) -> anyhow::Result<PullConsumer> {
        let stream = jetstream::new(self.nats.admin().await?).get_stream(mesh::STREAM).await?;
        // There is none before the first measurement.
        let _ = stream.delete_consumer(name).await;
        let config = pull::Config {
            durable_name: Some(name.to_owned()),
            filter_subject: "evt.bench.happened.v1.*".to_owned(),
            max_ack_pending: 1_000,
            max_waiting: 64,
            ..pull::Config::default()
        };
        Ok(stream.create_consumer(config).await?)
    }

    /// Rows that are not acknowledged yet.
    pub(crate) async fn pending(&self) -> anyhow::Result<i64> {
        Ok(sqlx::query_scalar("select count(*) from mesh.outbox").fetch_one(&self.pool).await?)
    }

    /// Whether every row was acknowledged.
    pub(crate) async fn is_drained(&self) -> anyhow::Result<bool> {
        Ok(!sqlx::query_scalar::<_, bool>("select exists (select from mesh.outbox)").fetch_one(&self.pool).await?)
    }
}

fn service() -> Service {
    Service::new("bench", "bench", sqlx::migrate::Migrator::DEFAULT)
}

/// The stream as shipped, but for its name's subjects.
fn stream() -> serde_json::Value {
    json!({
        "name": mesh::STREAM, "subjects": ["evt.>"], "retention": "limits", "storage": "file", "discard": "new",
        "num_replicas": 1, "duplicate_window": 120_000_000_000_u64, "allow_atomic": true,
    })
}
