//! One running process of a service without a database.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;

use super::declared::{self, DeclaredError};
use super::service::KvService;
use super::{KvInbox, upkeep};
use crate::broker::{Broker, BrokerOptions};
use crate::cli::{self, KvInvocation, Refused};
use crate::config::ProcessConfig;
use crate::consumer::Consumer;
use crate::context::ServiceContext;
use crate::control;
use crate::delivery::Delivery;
use crate::lifecycle::{Check, Lifecycle};
use crate::ops::{self, Beat};
use crate::process::{answer_control, check_durable, until_stopped};
use crate::service;
use crate::{http, telemetry};

pub(super) async fn main(service: KvService) -> ExitCode {
    let (name, build) = (service.name, service.build);
    let invocation = match cli::parse_kv_process(name, build) {
        Ok(invocation) => invocation,
        Err(code) => return code,
    };
    let outcome = match invocation {
        KvInvocation::Describe => {
            println!("{:#}", service.description());
            Ok(())
        }
        KvInvocation::Serve(config) => run(service, &config).await,
    };
    cli::finish(name, outcome)
}

async fn run(service: KvService, config: &ProcessConfig) -> anyhow::Result<()> {
    let context = ServiceContext::new(service.name, service.build, Arc::clone(&service.clock));
    let shared = Arc::clone(&context);
    until_stopped(
        &context,
        config,
        |lifecycle| async move { start(service, config, shared, &lifecycle).await.map(drop) },
    )
    .await
}

/// Connects and checks everything, then spawns it. Returns the address of the HTTP interface.
pub(crate) async fn start(
    service: KvService,
    config: &ProcessConfig,
    context: Arc<ServiceContext>,
    lifecycle: &Lifecycle,
) -> anyhow::Result<SocketAddr> {
    service::check(&service.registry)?;
    let exposition = telemetry::metrics::install()?;
    telemetry::metrics::build_info(context.name, context.build, context.instance.to_string());
    lifecycle.readiness().without_database();
    let options = BrokerOptions { url: config.nats_url.clone(), credentials: config.nats_creds.clone() };
    let broker = Broker::connect(options, Arc::clone(&context)).await?;
    check_durable(service.name, &service.registry, &broker).await?;
    check_buckets(&service, &broker, lifecycle).await?;
    let listener = TcpListener::bind(config.listen).await.with_context(|| format!("listen on {}", config.listen))?;
    let address = listener.local_addr().context("the address that was bound")?;
    tracing::info!(service = context.name, build = context.build, instance = %context.instance, %address, "starting");
    let router = http::router(lifecycle.readiness(), axum::Router::new(), None, exposition);
    lifecycle.spawn("http", http::serve(listener, router, lifecycle.clone()));
    spawn(service, config, &context, &broker, lifecycle);
    Ok(address)
}

fn spawn(
    service: KvService,
    config: &ProcessConfig,
    context: &Arc<ServiceContext>,
    broker: &Arc<Broker>,
    lifecycle: &Lifecycle,
) {
    let answering = (Arc::clone(context), lifecycle.clone());
    let serve = move |client| control::kv::serve(client, Arc::clone(&answering.0), answering.1.clone());
    lifecycle.spawn("control", answer_control(Arc::clone(broker), Arc::clone(context), lifecycle.clone(), serve));
    let beat = Beat::new(context, lifecycle, broker, None, &service.registry);
    lifecycle.spawn("ops", ops::run(beat));
    let inbox = KvInbox::new(Arc::clone(broker), Arc::clone(context), service.execution_max());
    let buckets = declared::Buckets::of(&service);
    lifecycle.spawn("upkeep", upkeep::run(buckets, inbox.clone(), Arc::clone(broker), lifecycle.clone()));
    if service.registry.is_empty() {
        lifecycle.readiness().holds(Check::Consumer);
        return;
    }
    let delivery = Delivery::new(inbox, Arc::clone(context), config.newer_version_wait);
    let consumer = Consumer::new(
        context.name,
        Arc::clone(broker),
        service.registry,
        delivery,
        lifecycle.readiness().clone(),
        config.concurrency as usize,
    );
    lifecycle.spawn_essential("consumer", consumer.run(lifecycle.soft().clone()));
}

/// How long a start waits for the buckets before it goes on without: they are looked at again while the process runs.
const BUCKETS_PATIENCE: Duration = Duration::from_secs(4);

/// Buckets that are missing or have drifted end the start at once; a broker that does not answer does not.
async fn check_buckets(service: &KvService, broker: &Arc<Broker>, lifecycle: &Lifecycle) -> anyhow::Result<()> {
    let buckets = declared::Buckets::of(service);
    match tokio::time::timeout(BUCKETS_PATIENCE, buckets.check(broker)).await {
        Ok(Ok(())) => lifecycle.readiness().holds(Check::Buckets),
        Ok(Err(error @ (DeclaredError::Missing { .. } | DeclaredError::Drifted { .. }))) => {
            return Err(Refused(error.to_string()).into());
        }
        Ok(Err(error)) => tracing::warn!(%error, "the buckets cannot be checked yet"),
        Err(_) => tracing::warn!("the buckets cannot be checked yet"),
    }
    Ok(())
}
