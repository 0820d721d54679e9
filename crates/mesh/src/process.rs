//! One running process of a service: everything is configured, connected and checked before anything is spawned.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::net::TcpListener;

use crate::broker::{Broker, BrokerOptions};
use crate::cli::{self, Invocation, Refused};
use crate::clock::jittered;
use crate::config::{Config, DatabaseUrl, RelayMode};
use crate::consumer::{self, Consumer, DurableError};
use crate::context::ServiceContext;
use crate::delivery::{Delivery, SqlInbox};
use crate::failure::{Backoff, is_outage};
use crate::lifecycle::{Check, Lifecycle};
use crate::mesh::Mesh;
use crate::relay::Relay;
use crate::service::Service;
use crate::telemetry::Telemetry;
use crate::{control, http, schema, telemetry, upkeep, wake};

/// Connections of the relay: one reads, two move, one keeps the leases.
const RELAY_CONNECTIONS: u32 = 4;

/// The relay's statements have one right plan each, and the planner cannot know it. It passes long arrays, which are
/// compared by hash only in a plan made for their values; from those arrays the planner concludes that hardly a row
/// is left, and would read and sort a whole backlog where the first rows of the primary key are wanted.
pub(crate) const RELAY_PLANS: [(&str, &str); 4] = [
    ("plan_cache_mode", "force_custom_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_sort", "off"),
];

/// How long a request or a delivery waits for a connection.
const WORK_PATIENCE: Duration = Duration::from_secs(5);

/// The same for the relay, which nobody competes with: a longer wait means that the database is away.
const RELAY_PATIENCE: Duration = Duration::from_secs(2);

/// How long a start waits for a database that cannot be reached.
const DATABASE_PATIENCE: Duration = Duration::from_secs(30);

/// How long a start waits for the broker before it goes on without: the outbox takes facts meanwhile.
const BROKER_PATIENCE: Duration = Duration::from_secs(4);

/// The pause before control requests are subscribed to again.
const CONTROL_AGAIN: Duration = Duration::from_secs(2);

/// Pauses between tries to reach the database at the start.
const CONNECT: Backoff = Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(2) };

pub(crate) async fn main(service: Service) -> ExitCode {
    let (name, build) = (service.name, service.build);
    let invocation = match cli::parse_process(name, build) {
        Ok(invocation) => invocation,
        Err(code) => return code,
    };
    let outcome = match invocation {
        Invocation::Describe => {
            println!("{:#}", service.description());
            Ok(())
        }
        Invocation::Migrate(url) => migrate(&service, &url).await,
        Invocation::Serve(config) => run(service, config, Role::Serve).await,
        Invocation::Relay(config) => run(service, config, Role::Relay).await,
    };
    cli::finish(name, outcome)
}

/// What a process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Serve,
    Relay,
}

async fn migrate(service: &Service, url: &DatabaseUrl) -> anyhow::Result<()> {
    let options = url.connect_options(&format!("{} migrate", service.name));
    schema::migrate(&options, &service.migrations).await?;
    println!("{}: the schema is up to date", service.name);
    Ok(())
}

/// Logs exist, and are flushed, whether or not the rest succeeds.
async fn run(service: Service, config: Config, role: Role) -> anyhow::Result<()> {
    let context = ServiceContext::new(service.name, service.build, Arc::clone(&service.clock));
    let logs = &config.telemetry;
    let telemetry = Telemetry::init(&context, logs.format, &logs.filter, logs.otlp_endpoint.as_deref())?;
    let outcome = run_with_logs(service, config, role, context).await;
    if let Err(error) = &outcome {
        tracing::error!(error = format!("{error:#}"), "ending");
    }
    telemetry.shut_down();
    outcome
}

async fn run_with_logs(
    service: Service,
    config: Config,
    role: Role,
    context: Arc<ServiceContext>,
) -> anyhow::Result<()> {
    let lifecycle = Lifecycle::new();
    lifecycle.listen_for_signals().context("listen for signals")?;
    let drain = config.drain;
    start(service, &config, role, context, &lifecycle).await?;
    lifecycle.soft().cancelled().await;
    lifecycle.drain(drain).await?;
    if let Some(task) = lifecycle.failed() {
        anyhow::bail!("`{task}` ended by itself");
    }
    tracing::info!("stopped");
    Ok(())
}

/// Connects and checks everything, then spawns it. Returns what handlers share, and the address of the HTTP interface.
pub(crate) async fn start(
    service: Service,
    config: &Config,
    role: Role,
    context: Arc<ServiceContext>,
    lifecycle: &Lifecycle,
) -> anyhow::Result<(Mesh, SocketAddr)> {
    service.check()?;
    let exposition = telemetry::metrics::install()?;
    telemetry::metrics::build_info(context.name, context.build, context.instance.to_string());
    let pools = Pools::connect(config, &context).await?;
    pools.check_schema(&service, lifecycle).await?;
    let options = BrokerOptions { url: config.nats_url.clone(), credentials: config.nats_creds.clone() };
    let broker = Broker::connect(options, Arc::clone(&context)).await?;
    check_durable(&service, &broker, role).await?;
    let listener = TcpListener::bind(config.listen).await.with_context(|| format!("listen on {}", config.listen))?;
    let address = listener.local_addr().context("the address that was bound")?;
    let mesh = Mesh::new(pools.work.clone(), Arc::clone(&context), lifecycle.clone());
    tracing::info!(service = context.name, build = context.build, instance = %context.instance, %address, ?role, "starting");
    spawn(service, config, role, &mesh, &pools, &broker, exposition, listener);
    Ok((mesh, address))
}

/// Starts everything that the role asks for. Each part ends by itself at the soft token.
#[expect(clippy::too_many_arguments, reason = "the parts of one process, wired in one place")]
fn spawn(
    service: Service,
    config: &Config,
    role: Role,
    mesh: &Mesh,
    pools: &Pools,
    broker: &Arc<Broker>,
    exposition: telemetry::metrics::Exposition,
    listener: TcpListener,
) {
    let lifecycle = mesh.lifecycle();
    let (soft, context) = (lifecycle.soft(), mesh.context());
    if role == Role::Relay || config.relay == RelayMode::Inside {
        let relay = Relay::new(pools.relay.clone(), Arc::clone(context), Arc::clone(broker), soft.clone());
        lifecycle.spawn_essential("relay", relay.run());
    }
    lifecycle.spawn("wake", wake::run(Arc::clone(broker), Arc::clone(context), soft.clone()));
    lifecycle.spawn("upkeep", upkeep::run(mesh.clone(), Arc::clone(broker)));
    let routes = if role == Role::Serve { service.routes } else { axum::Router::new() };
    let openapi = service.openapi.filter(|_| role == Role::Serve);
    let router = http::router(mesh, routes, openapi, exposition);
    lifecycle.spawn("http", http::serve(listener, router, lifecycle.clone()));
    if role == Role::Relay || service.registry.is_empty() {
        lifecycle.readiness().holds(Check::Consumer);
    }
    if role == Role::Relay {
        return;
    }
    lifecycle.spawn("control", answer_control(Arc::clone(broker), mesh.clone()));
    for start in service.timers {
        start(mesh);
    }
    if service.registry.is_empty() {
        return;
    }
    let inbox = SqlInbox::new(pools.work.clone(), Arc::clone(context));
    let delivery = Delivery::new(inbox, Arc::clone(context), config.newer_version_wait);
    let consumer = Consumer::new(
        context.name,
        Arc::clone(broker),
        service.registry,
        delivery,
        lifecycle.readiness().clone(),
        config.concurrency as usize,
    );
    lifecycle.spawn_essential("consumer", consumer.run(soft.clone()));
}

/// Answers control requests over whatever client is in use.
async fn answer_control(broker: Arc<Broker>, mesh: Mesh) {
    let lifecycle = mesh.lifecycle().clone();
    while !lifecycle.soft().is_cancelled() {
        let connection = broker.connection();
        tokio::select! {
            () = control::serve(connection.client, mesh.clone(), lifecycle.clone()) => {
                tokio::time::sleep(jittered(CONTROL_AGAIN, &*mesh.context().clock)).await;
            }
            () = broker.replaced(connection.generation) => {}
            () = lifecycle.soft().cancelled() => {}
        }
    }
}

/// The connections of a process: the relay's are its own, so that neither starves the other.
struct Pools {
    work: PgPool,
    relay: PgPool,
}

impl Pools {
    async fn connect(config: &Config, context: &ServiceContext) -> anyhow::Result<Self> {
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

    async fn check_schema(&self, service: &Service, lifecycle: &Lifecycle) -> anyhow::Result<()> {
        let mut connection = self.work.acquire().await?;
        schema::check(&mut connection, service.name, &service.migrations).await?;
        lifecycle.readiness().holds(Check::Schema);
        lifecycle.readiness().holds(Check::Database);
        Ok(())
    }
}

/// A durable that is missing or has drifted ends the start at once; a broker that does not answer does not, since
/// committed facts wait in the outbox.
async fn check_durable(service: &Service, broker: &Arc<Broker>, role: Role) -> anyhow::Result<()> {
    if tokio::time::timeout(BROKER_PATIENCE, broker.events().connected()).await.is_err() {
        tracing::warn!("NATS cannot be reached yet; going on without it");
        return Ok(());
    }
    if role == Role::Relay || service.registry.is_empty() {
        return Ok(());
    }
    match consumer::verify(&broker.connection(), service.name, &service.registry).await {
        Ok(_) => Ok(()),
        Err(error @ (DurableError::Missing { .. } | DurableError::Drifted { .. })) => {
            Err(Refused(error.to_string()).into())
        }
        Err(error) => {
            tracing::warn!(%error, "the durable consumer cannot be checked yet");
            Ok(())
        }
    }
}
