//! One running process of a service: everything is configured, connected and checked before anything is spawned.

mod pools;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use async_nats::Client;
use tokio::net::TcpListener;

use crate::broker::{Broker, BrokerOptions};
use crate::cli::{self, Invocation, Refused};
use crate::clock::jittered;
use crate::config::{Config, DatabaseUrl, ProcessConfig, RelayMode};
use crate::consumer::{self, Consumer, DurableError};
use crate::context::ServiceContext;
use crate::dead_letter::Redriver;
use crate::delivery::{Delivery, Registry, SqlInbox};
use crate::janitor::{self, Janitor};
use crate::lifecycle::{Check, Lifecycle};
use crate::mesh::Mesh;
use crate::ops::{self, Beat};
use crate::reconcile::{self, Reconciler};
use crate::relay::Relay;
use crate::service::{self, Service};
use crate::telemetry::Telemetry;
use crate::{control, http, schema, telemetry, upkeep, wake};
use pools::Pools;
#[cfg(test)]
pub(crate) use pools::RELAY_PLANS;

/// How long a start waits for the broker before it goes on without: the outbox takes facts meanwhile.
const BROKER_PATIENCE: Duration = Duration::from_secs(4);

/// The pause before control requests are subscribed to again.
const CONTROL_AGAIN: Duration = Duration::from_secs(2);

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

async fn run(service: Service, config: Config, role: Role) -> anyhow::Result<()> {
    let context = ServiceContext::new(service.name, service.build, Arc::clone(&service.clock));
    let (shared, config) = (Arc::clone(&context), &config);
    until_stopped(&context, &config.process, |lifecycle| async move {
        start(service, config, role, shared, &lifecycle).await.map(drop)
    })
    .await
}

/// Starts the process by `start` and runs it until it is told to stop. Logs exist, and are flushed, whether or not the rest
/// succeeds.
pub(crate) async fn until_stopped<F: Future<Output = anyhow::Result<()>>>(
    context: &ServiceContext,
    config: &ProcessConfig,
    start: impl FnOnce(Lifecycle) -> F,
) -> anyhow::Result<()> {
    let logs = &config.telemetry;
    let telemetry = Telemetry::init(context, logs.format, &logs.filter, logs.otlp_endpoint.as_deref())?;
    let outcome = run_with_logs(config, start).await;
    if let Err(error) = &outcome {
        tracing::error!(error = format!("{error:#}"), "ending");
    }
    telemetry.shut_down();
    outcome
}

async fn run_with_logs<F: Future<Output = anyhow::Result<()>>>(
    config: &ProcessConfig,
    start: impl FnOnce(Lifecycle) -> F,
) -> anyhow::Result<()> {
    let lifecycle = Lifecycle::new();
    lifecycle.listen_for_signals().context("listen for signals")?;
    start(lifecycle.clone()).await?;
    lifecycle.soft().cancelled().await;
    lifecycle.drain(config.drain).await?;
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
    service::check(&service.registry)?;
    let exposition = telemetry::metrics::install()?;
    telemetry::metrics::build_info(context.name, context.build, context.instance.to_string());
    let pools = Pools::connect(config, &context).await?;
    pools.check_schema(&service, lifecycle).await?;
    let options =
        BrokerOptions { url: config.process.nats_url.clone(), credentials: config.process.nats_creds.clone() };
    let broker = Broker::connect(options, Arc::clone(&context)).await?;
    if role == Role::Serve {
        check_durable(service.name, &service.registry, &broker).await?;
    }
    janitor::check(config.retention, &broker).await.map_err(|error| Refused(error.to_string()))?;
    let listener = TcpListener::bind(config.process.listen)
        .await
        .with_context(|| format!("listen on {}", config.process.listen))?;
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
    look_after_the_past(config, mesh, broker);
    lifecycle.spawn("upkeep", upkeep::run(mesh.clone(), Arc::clone(broker)));
    let heard = if role == Role::Serve { service.registry.clone() } else { Registry::default() };
    lifecycle.spawn("ops", ops::run(Beat::new(context, lifecycle, broker, Some(mesh.pool().clone()), &heard)));
    let routes = if role == Role::Serve { service.routes } else { axum::Router::new() };
    let openapi = service.openapi.filter(|_| role == Role::Serve);
    let router = http::router(lifecycle.readiness(), routes.with_state(mesh.clone()), openapi, exposition);
    lifecycle.spawn("http", http::serve(listener, router, lifecycle.clone()));
    if role == Role::Relay || service.registry.is_empty() {
        lifecycle.readiness().holds(Check::Consumer);
    }
    if role == Role::Relay {
        return;
    }
    let inbox = SqlInbox::new(pools.work.clone(), Arc::clone(context));
    let delivery = Delivery::new(inbox, Arc::clone(context), config.process.newer_version_wait);
    let redriver = Redriver::new(pools.work.clone(), service.registry.clone(), delivery.clone());
    lifecycle.spawn("operations", Arc::clone(&redriver).follow_operations(soft.clone()));
    lifecycle.spawn("releases", Arc::clone(&redriver).follow_releases(soft.clone()));
    let answering = mesh.clone();
    let serve = move |client| control::serve(client, answering.clone(), Arc::clone(&redriver));
    lifecycle.spawn("control", answer_control(Arc::clone(broker), Arc::clone(context), lifecycle.clone(), serve));
    for start in service.timers {
        start(mesh);
    }
    if service.registry.is_empty() {
        return;
    }
    let consumer = Consumer::new(
        context.name,
        Arc::clone(broker),
        service.registry,
        delivery,
        lifecycle.readiness().clone(),
        config.process.concurrency as usize,
    );
    lifecycle.spawn_essential("consumer", consumer.run(soft.clone()));
}

/// Starts what one replica does for all: comparing what was published with the stream, removing what is no longer needed.
fn look_after_the_past(config: &Config, mesh: &Mesh, broker: &Arc<Broker>) {
    let (lifecycle, retention) = (mesh.lifecycle(), config.retention);
    let parts = || (mesh.pool().clone(), Arc::clone(mesh.context()), Arc::clone(broker), lifecycle.soft().clone());
    let (pool, context, connection, soft) = parts();
    let settings = reconcile::Settings { every: retention.reconcile_every, kept: retention.outbox_sent };
    lifecycle.spawn("reconcile", Reconciler::new(pool, context, connection, soft, settings).run());
    let (pool, context, connection, soft) = parts();
    lifecycle.spawn("janitor", Janitor::new(pool, context, connection, soft, retention).run());
}

/// Answers control requests over whatever client is in use.
pub(crate) async fn answer_control<F: Future<Output = ()>>(
    broker: Arc<Broker>,
    context: Arc<ServiceContext>,
    lifecycle: Lifecycle,
    serve: impl Fn(Client) -> F,
) {
    while !lifecycle.soft().is_cancelled() {
        let connection = broker.connection();
        tokio::select! {
            () = serve(connection.client) => {
                tokio::time::sleep(jittered(CONTROL_AGAIN, &*context.clock)).await;
            }
            () = broker.replaced(connection.generation) => {}
            () = lifecycle.soft().cancelled() => {}
        }
    }
}

/// A durable that is missing or has drifted ends the start at once; a broker that does not answer does not, since
/// committed facts wait in the outbox.
pub(crate) async fn check_durable<Context>(
    service: &'static str,
    registry: &Registry<Context>,
    broker: &Broker,
) -> anyhow::Result<()> {
    if tokio::time::timeout(BROKER_PATIENCE, broker.events().connected()).await.is_err() {
        tracing::warn!("NATS cannot be reached yet; going on without it");
        return Ok(());
    }
    if registry.is_empty() {
        return Ok(());
    }
    match consumer::verify(&broker.connection(), service, registry).await {
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
