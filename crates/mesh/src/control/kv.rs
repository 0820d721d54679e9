//! What a service without a database answers: how each of its processes is.

use std::sync::Arc;

use async_nats::Client;
use async_nats::service::ServiceExt;
use futures_util::StreamExt;
use serde::Serialize;
use uuid::Uuid;

use super::{Verb, encode, respond, semantic};
use crate::context::ServiceContext;
use crate::lifecycle::{Lifecycle, Report};

/// The state of one process.
#[derive(Debug, Serialize)]
struct Status {
    service: &'static str,
    build: &'static str,
    instance: Uuid,
    #[serde(flatten)]
    readiness: Report,
}

/// Answers until the process stops, or until the client is gone.
pub(crate) async fn serve(client: Client, context: Arc<ServiceContext>, lifecycle: Lifecycle) {
    if let Err(error) = answer(client, &context, &lifecycle).await {
        tracing::error!(error, "control requests are not answered");
    }
}

async fn answer(client: Client, context: &ServiceContext, lifecycle: &Lifecycle) -> Result<(), async_nats::Error> {
    let (service, build, instance) = (context.name, context.build, context.instance);
    let metadata = [("instance", instance.to_string()), ("build", build.to_owned())];
    let running = client
        .service_builder()
        .description(format!("Control of the service {service}"))
        .metadata(metadata.map(|(name, value)| (name.to_owned(), value)).into())
        .start(service, semantic(build))
        .await?;
    let verb = Verb::Status;
    let endpoint = running.endpoint_builder().name(verb.name()).queue_group(verb.queue_group(instance));
    let mut requests = endpoint.add(format!("mesh.ctl.{service}.{}", verb.name())).await?;
    while let Some(Some(request)) = lifecycle.soft().run_until_cancelled(requests.next()).await {
        let readiness = lifecycle.readiness().report();
        respond(&request, encode(&Status { service, build, instance, readiness })).await;
    }
    running.stop().await
}
