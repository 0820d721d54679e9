//! Tests of subscribers, timers and operations against a real database and without a broker: the production delivery path,
//! minus NATS.

mod conformance;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use envelope::{Event, EventType, Metadata, RawMessage, Subject, Timestamp, decode, encode, headers};
use sqlx::PgPool;
use uuid::Uuid;

use crate::config::Config;
use crate::context::ServiceContext;
use crate::delivery::{Delivery, Incoming, Next, Registry, SqlInbox, Verdict};
use crate::lifecycle::Lifecycle;
use crate::mesh::Mesh;
use crate::process::{self, Role};
use crate::service::Service;
use crate::timer::{self, Progress, Timer};
use crate::{Failure, http, schema, telemetry};

pub use crate::kv::testing::RunningKv;
pub use conformance::{ConformanceError, Declared, Rule, conformance};

/// Brings a test database up to date for a service, as `<service> migrate` does.
///
/// # Errors
/// When the URL cannot be read or a migration fails.
pub async fn migrate(service: &Service, url: &str) -> anyhow::Result<()> {
    let url: crate::config::DatabaseUrl = url.parse().map_err(anyhow::Error::msg)?;
    schema::migrate(&url.connect_options("migrate"), &service.migrations).await?;
    Ok(())
}

/// A whole service running inside the test's process: consumer, relay, timers, HTTP. No signals, no logs of its own.
#[derive(Debug)]
pub struct Running {
    mesh: Mesh,
    lifecycle: Lifecycle,
    address: SocketAddr,
    drain: Duration,
}

impl Running {
    /// Starts `service` as its process would, against the real servers that `config` names. Use port 0.
    ///
    /// # Errors
    /// What would end the process at its start.
    pub async fn start(service: Service, config: Config) -> anyhow::Result<Self> {
        Self::start_as(service, config, Role::Serve).await
    }

    /// Starts only the relay of `service`.
    ///
    /// # Errors
    /// What would end the process at its start.
    pub async fn start_relay(service: Service, config: Config) -> anyhow::Result<Self> {
        Self::start_as(service, config, Role::Relay).await
    }

    async fn start_as(service: Service, config: Config, role: Role) -> anyhow::Result<Self> {
        let context = ServiceContext::new(service.name, service.build, Arc::clone(&service.clock));
        let lifecycle = Lifecycle::new();
        let (mesh, address) = process::start(service, &config, role, context, &lifecycle).await?;
        Ok(Self { mesh, lifecycle, address, drain: config.process.drain })
    }

    /// Where HTTP is served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What its handlers share.
    #[must_use]
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Commits one transaction that publishes these facts, as an operation named `test` would; each fact's key must be a
    /// UUID.
    ///
    /// # Errors
    /// When a fact is refused or the database fails.
    pub async fn publish<E: Event>(&self, facts: &[E]) -> anyhow::Result<()> {
        let mut tx = self.mesh.begin("test", self.mesh.context().clock.draw_id()).await?;
        for fact in facts {
            tx.publish(fact)?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Drains, as after SIGTERM.
    ///
    /// # Errors
    /// When something had to be cut off.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.lifecycle.drain(self.drain).await?;
        Ok(())
    }

    /// Ends at once, as after a second signal. What was in flight in a transaction still ends by itself.
    pub fn kill(self) {
        self.lifecycle.kill();
    }
}

/// A service over a test database, with a test in place of the broker.
#[derive(Debug)]
pub struct TestBed {
    mesh: Mesh,
    registry: Registry,
    delivery: Delivery,
    routes: Option<Router<Mesh>>,
    /// When the stream is taken to have stored what is delivered: a message that comes again was stored once.
    stored_at: Timestamp,
}

impl TestBed {
    /// A bed for `service` over a migrated database.
    #[must_use]
    pub fn new(service: Service, pool: PgPool) -> Self {
        let context = ServiceContext::new(service.name, service.build, Arc::clone(&service.clock));
        let inbox = SqlInbox::new(pool.clone(), Arc::clone(&context));
        let delivery = Delivery::new(inbox, Arc::clone(&context), Duration::from_secs(600));
        let stored_at = context.clock.now();
        let mesh = Mesh::new(pool, context, Lifecycle::new());
        Self { mesh, registry: service.registry, delivery, routes: Some(service.routes), stored_at }
    }

    /// Connections to the database, for looking.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        self.mesh.pool()
    }

    /// The HTTP routes of the service, ready to be called.
    ///
    /// # Errors
    /// When the process records its metrics elsewhere, or the routes were taken before.
    pub fn router(&mut self) -> anyhow::Result<Router> {
        let routes = self.routes.take().ok_or_else(|| anyhow::anyhow!("the routes were taken before"))?;
        let metrics = telemetry::metrics::install()?;
        Ok(http::router(self.mesh.lifecycle().readiness(), routes.with_state(self.mesh.clone()), None, metrics))
    }

    /// Delivers a fact with a fresh id to every subscriber that hears it. Returns each one's verdict.
    ///
    /// # Errors
    /// When the fact cannot be encoded.
    pub async fn deliver<E: Event>(&self, event: &E) -> anyhow::Result<Vec<(&'static str, Verdict)>> {
        let id = self.mesh.context().clock.draw_id();
        Ok(self.deliver_message(message(event, id)?, false).await)
    }

    /// Delivers a message as it would come from the stream; `redelivered` is the server's word that it came before.
    pub async fn deliver_message(&self, raw: RawMessage, redelivered: bool) -> Vec<(&'static str, Verdict)> {
        let incoming = Arc::new(Incoming::new(raw, 1, self.stored_at, redelivered));
        let hearing = incoming.subject_type().map(|event_type| self.registry.hearing(&event_type)).unwrap_or_default();
        let mut verdicts = Vec::new();
        for subscriber in hearing {
            let mut next = Next::on_arrival(&incoming);
            let verdict = self.delivery.deliver(&subscriber, &incoming, &mut next).await;
            verdicts.push((subscriber.name(), verdict));
        }
        verdicts
    }

    /// The facts of type `E` that wait in the outbox, in commit order per key.
    ///
    /// # Errors
    /// When the database fails or a fact cannot be decoded.
    pub async fn published<E: Event>(&self) -> anyhow::Result<Vec<(Metadata, E)>> {
        let wanted = EventType::of::<E>().to_string();
        let rows = sqlx::query!(
            r#"
            select subject, headers, payload, occurred_at, key_version
            from mesh.outbox
            where event_type = $1
            order by seq
            "#,
            wanted,
        )
        .fetch_all(self.pool())
        .await?;
        let mut facts = Vec::with_capacity(rows.len());
        for row in rows {
            let mut list: Vec<(String, String)> = serde_json::from_str(&row.headers)?;
            list.push((headers::CE_TIME.to_owned(), Timestamp::from_offset(row.occurred_at).to_string()));
            list.push((headers::CE_SEQUENCE.to_owned(), format!("{:020}", row.key_version)));
            facts.push(decode(&RawMessage { subject: row.subject, headers: list, body: row.payload })?);
        }
        Ok(facts)
    }

    /// Ticks a timer once, committed.
    ///
    /// # Errors
    /// What the tick failed with.
    pub async fn tick<T: Timer>(&self, timer: &Arc<T>) -> Result<Progress, Failure> {
        timer::tick(Arc::clone(timer), self.pool().clone(), Arc::clone(self.mesh.context())).await
    }
}

/// The message of a fact as its own service would publish it: first of its key, root of its flow.
///
/// # Errors
/// When the fact cannot be encoded, or its key is no UUID.
pub fn message<E: Event>(event: &E, id: Uuid) -> anyhow::Result<RawMessage> {
    let key = event.key();
    let event_type = EventType::of::<E>();
    let subject = Subject::new(&event_type, &key)?;
    let metadata = Metadata {
        id,
        source: format!("urn:mesh:{}", E::DOMAIN),
        event_type,
        time: Timestamp::from_offset(time::OffsetDateTime::UNIX_EPOCH),
        correlation_id: key.parse()?,
        key,
        revision: E::REVISION,
        causation_id: None,
        sequence: 1,
        emitter: format!("{}/test@0", E::DOMAIN),
        hops: 0,
        trace: None,
        occurrence_id: None,
        extensions: Vec::new(),
    };
    Ok(RawMessage { subject: subject.as_str().to_owned(), headers: metadata.to_headers()?, body: encode(event)? })
}
