//! What a running service answers over NATS: `mesh.ctl.<service>.<verb>`, in the services framework, so that
//! `nats micro` finds it too. Tools ask here and never look into the database of a service.

pub(crate) mod kv;
mod outbox;

use std::collections::HashMap;

use async_nats::Client;
use async_nats::service::endpoint::Endpoint;
use async_nats::service::{Request, Service, ServiceExt, error};
use bytes::Bytes;
use futures_util::StreamExt;
use serde::Serialize;
use uuid::Uuid;

use crate::Mesh;
use crate::lifecycle::{Lifecycle, Report};

/// What can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    /// How is this process? Every replica answers, so whoever asks collects several answers.
    Status,
    /// How is the outbox of the service? It is one for all replicas, so any one of them answers.
    Outbox,
}

impl Verb {
    const ALL: [Self; 2] = [Self::Status, Self::Outbox];

    const fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Outbox => "outbox",
        }
    }

    /// Among those who listen in one queue group, one hears the question.
    fn queue_group(self, instance: Uuid) -> String {
        match self {
            Self::Status => instance.to_string(),
            Self::Outbox => "any".to_owned(),
        }
    }
}

/// Answers until the process stops, or until the client is gone.
pub(crate) async fn serve(client: Client, mesh: Mesh, lifecycle: Lifecycle) {
    let (service, endpoints) = match start(&client, &mesh).await {
        Ok(started) => started,
        Err(error) => {
            tracing::error!(error, "control requests are not answered");
            return;
        }
    };
    let answering = endpoints.into_iter().map(|(verb, requests)| answer_all(verb, requests, &mesh, &lifecycle));
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
        let endpoint = service.endpoint_builder().name(verb.name()).queue_group(verb.queue_group(context.instance));
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
async fn answer_all(verb: Verb, mut requests: Endpoint, mesh: &Mesh, lifecycle: &Lifecycle) {
    while let Some(Some(request)) = lifecycle.soft().run_until_cancelled(requests.next()).await {
        let answer = match verb {
            Verb::Status => encode(&Status::of(mesh, lifecycle)),
            Verb::Outbox => match outbox::look(mesh.pool()).await {
                Ok(outbox) => encode(&Answer::from(mesh, outbox)),
                Err(error) => Err(failed(&error)),
            },
        };
        respond(&request, answer).await;
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
    fn of(mesh: &Mesh, lifecycle: &Lifecycle) -> Answer<Self> {
        let pool = mesh.pool();
        let connections = [
            ("open", u64::from(pool.size())),
            ("idle", u64::try_from(pool.num_idle()).unwrap_or(u64::MAX)),
            ("most", u64::from(pool.options().get_max_connections())),
        ];
        let readiness = lifecycle.readiness().report();
        Answer::from(mesh, Self { readiness, database_connections: connections.into() })
    }
}

fn encode(answer: &impl Serialize) -> Result<Bytes, error::Error> {
    serde_json::to_vec(answer).map(Bytes::from).map_err(|error| failed(&error))
}

fn failed(error: &(dyn std::error::Error + 'static)) -> error::Error {
    tracing::warn!(error, "a control request failed");
    // A header takes one line.
    error::Error { status: error.to_string().replace(['\r', '\n'], " "), code: 500 }
}

async fn respond(request: &Request, answer: Result<Bytes, error::Error>) {
    if let Err(error) = request.respond(answer).await {
        tracing::debug!(%error, "a control request could not be answered");
    }
}

#[cfg(test)]
mod tests;
