//! What a running service answers over NATS: `mesh.ctl.<service>.<verb>`, in the services framework, so that
//! `nats micro` finds it too. Tools ask here and never look into the database of a service.
//!
//! One request has one reply: the permissions of a service allow no more, and whatever takes long is an operation that is
//! written down, done by whichever replica comes to it, and asked about with `operation.show`.

mod dead;
mod explain;
pub(crate) mod kv;
mod operation;
mod outbox;
mod reconcile;
mod request;
mod verb;

use std::collections::HashMap;
use std::sync::Arc;

use async_nats::Client;
use async_nats::service::endpoint::Endpoint;
use async_nats::service::{Request, Service, ServiceExt, error};
use bytes::Bytes;
use futures_util::StreamExt;
use serde::Serialize;
use uuid::Uuid;

use crate::Mesh;
use crate::dead_letter::Redriver;
use crate::lifecycle::Report;
use request::Refused;
use verb::Verb;

/// What an answer is made from.
#[derive(Clone)]
struct Desk {
    mesh: Mesh,
    redriver: Arc<Redriver>,
}

/// Answers until the process stops, or until the client is gone.
pub(crate) async fn serve(client: Client, mesh: Mesh, redriver: Arc<Redriver>) {
    let (service, endpoints) = match start(&client, &mesh).await {
        Ok(started) => started,
        Err(error) => {
            tracing::error!(error, "control requests are not answered");
            return;
        }
    };
    let desk = Desk { mesh, redriver };
    let answering = endpoints.into_iter().map(|(verb, requests)| answer_all(verb, requests, &desk));
    futures_util::future::join_all(answering).await;
    if let Err(error) = service.stop().await {
        tracing::debug!(error, "the control endpoints go with the connection");
    }
}

async fn start(client: &Client, mesh: &Mesh) -> Result<(Service, Vec<(Verb, Endpoint)>), async_nats::Error> {
    let context = mesh.context();
    let metadata = [("instance", context.instance.to_string()), ("build", context.build.to_owned())];
    let service = client
        .service_builder()
        .description(format!("Control of the service {}", context.name))
        .metadata(metadata.map(|(name, value)| (name.to_owned(), value)).into())
        .start(context.name, semantic(context.build))
        .await?;
    let mut endpoints = Vec::new();
    for verb in Verb::ALL {
        let endpoint = service.endpoint_builder().name(verb.endpoint()).queue_group(verb.queue_group(context.instance));
        endpoints.push((verb, endpoint.add(format!("mesh.ctl.{}.{}", context.name, verb.name())).await?));
    }
    Ok((service, endpoints))
}

/// The framework takes semantic versions only; the real build is in the metadata.
fn semantic(build: &str) -> String {
    let core = build.split(['-', '+']).next().unwrap_or_default();
    let numbers: Vec<Option<u64>> = core.split('.').map(|number| number.parse().ok()).collect();
    match numbers[..] {
        [Some(major), Some(minor), Some(patch)] => format!("{major}.{minor}.{patch}"),
        _ => "0.0.0".to_owned(),
    }
}

/// One request of a verb after another: whoever asks too often waits, and holds up no other verb.
async fn answer_all(verb: Verb, mut requests: Endpoint, desk: &Desk) {
    let lifecycle = desk.mesh.lifecycle();
    while let Some(Some(request)) = lifecycle.soft().run_until_cancelled(requests.next()).await {
        let (desk, body) = (desk.clone(), request.message.payload.clone());
        // A task of its own: this one is dropped with its client, and a transaction is not cut off in the middle.
        let answered = lifecycle.spawn("control request", async move { desk.answer(verb, &body).await }).await;
        respond(&request, answered.unwrap_or_else(|error| Err(Refused::failed(&error)))).await;
    }
}

impl Desk {
    async fn answer(&self, verb: Verb, body: &[u8]) -> Result<Bytes, Refused> {
        match verb {
            Verb::Status => encode(&Status::of(&self.mesh)),
            Verb::Outbox => self.content(outbox::look(self.mesh.pool()).await?),
            Verb::Explain => self.content(explain::look(self.mesh.pool(), request::read(body)?).await?),
            Verb::Reconcile => self.content(reconcile::look(self.mesh.pool(), request::read(body)?).await?),
            Verb::OutboxWhy => self.content(outbox::why(self.mesh.pool(), request::read(body)?).await?),
            Verb::OutboxPreview => self.content(outbox::preview(self.mesh.pool(), request::read(body)?).await?),
            Verb::OutboxRetry => self.content(operation::retry(&self.mesh, request::read(body)?).await?),
            Verb::DeadList => self.content(dead::list(self.mesh.pool(), request::read(body)?).await?),
            Verb::DeadShow => self.content(dead::show(self.mesh.pool(), request::read(body)?).await?),
            Verb::DeadPreview => self.content(dead::preview(self, request::read(body)?).await?),
            Verb::DeadRedrive => self.content(operation::redrive(self, request::read(body)?).await?),
            Verb::DeadDiscard => self.content(operation::discard(self, request::read(body)?).await?),
            Verb::OperationList => self.content(operation::list(self.mesh.pool()).await?),
            Verb::OperationShow => self.content(operation::show(self.mesh.pool(), request::read(body)?).await?),
            Verb::OperationStop => self.content(operation::stop(self.mesh.pool(), request::read(body)?).await?),
        }
    }

    fn content(&self, content: impl Serialize) -> Result<Bytes, Refused> {
        encode(&Answer::from(&self.mesh, content))
    }
}

/// An answer and who gives it.
#[derive(Debug, Serialize)]
struct Answer<T> {
    service: &'static str,
    build: &'static str,
    instance: Uuid,
    #[serde(flatten)]
    content: T,
}

impl<T> Answer<T> {
    fn from(mesh: &Mesh, content: T) -> Self {
        let context = mesh.context();
        Self { service: context.name, build: context.build, instance: context.instance, content }
    }
}

/// The state of one process.
#[derive(Debug, Serialize)]
struct Status {
    #[serde(flatten)]
    readiness: Report,
    database_connections: HashMap<&'static str, u64>,
}

impl Status {
    fn of(mesh: &Mesh) -> Answer<Self> {
        let pool = mesh.pool();
        let connections = [
            ("open", u64::from(pool.size())),
            ("idle", u64::try_from(pool.num_idle()).unwrap_or(u64::MAX)),
            ("most", u64::from(pool.options().get_max_connections())),
        ];
        let readiness = mesh.lifecycle().readiness().report();
        Answer::from(mesh, Self { readiness, database_connections: connections.into() })
    }
}

fn encode(answer: &impl Serialize) -> Result<Bytes, Refused> {
    serde_json::to_vec(answer).map(Bytes::from).map_err(|error| Refused::failed(&error))
}

async fn respond(request: &Request, answer: Result<Bytes, Refused>) {
    let answer = answer.map_err(|refused| error::Error { status: refused.to_string(), code: refused.code() });
    if let Err(error) = request.respond(answer).await {
        tracing::debug!(%error, "a control request could not be answered");
    }
}

#[cfg(test)]
mod tests;
