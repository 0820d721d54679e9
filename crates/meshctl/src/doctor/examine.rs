//! Asks the servers and the services what [`super::checks`] judges.

use std::time::Duration;

use async_nats::HeaderMap;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::checks::{self, Load, Status};
use super::{Check, State};
use crate::broker::{ANSWER_WITHIN, Broker, RequestError};
use crate::declaration::{Config, Declaration};
use crate::permissions::OPERATOR;
use crate::target::Target;
use crate::{control, dev, outbox, streams};

/// How often a consumer is looked at, and after which pause.
const LOOKS: usize = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// A fact that there is not.
const PROBE: &str = "evt.doctor.probe.v1.0";

/// All checks, in the order in which one rests on the other.
pub(super) async fn all(target: &Target, declaration: &Declaration, monitor_url: Option<&str>) -> Vec<Check> {
    let broker = match Broker::connect(target, OPERATOR).await {
        Ok(broker) => broker,
        Err(error) => {
            let remedy = "start the server, or name the right address and credentials";
            return vec![Check::failed("broker", format!("{error:#}"), remedy)];
        }
    };
    let server = broker.client.server_info();
    let mut found =
        vec![Check::ok("broker", format!("connected to {}", target.nats_url)), checks::version(&server.version)];
    found.push(sync(monitor_url).await);
    if let Err(error) = broker.api("INFO", &json!({})).await {
        found.push(Check::failed(
            "JetStream",
            error.to_string(),
            "turn it on: `jetstream {}` in the server's configuration",
        ));
        return found;
    }
    found.push(permissions(&broker, declaration).await);
    match streams::plan(&broker, declaration).await {
        Ok(plan) => found.extend(checks::declared(&plan)),
        Err(error) => {
            found.push(Check::failed("stream", format!("{error:#}"), "let the operator read the JetStream API"));
        }
    }
    let stream = declaration.stream_name();
    let consumers = declaration.consumers.iter();
    let deliveries = join_all(consumers.map(|(service, config)| pulling(&broker, stream, service, config)));
    let services = join_all(dev::SERVICES.iter().map(|service| examine_service(&broker, service)));
    let (deliveries, services) = tokio::join!(deliveries, services);
    found.extend(deliveries);
    found.extend(services.into_iter().flatten());
    found
}

async fn sync(monitor_url: Option<&str>) -> Check {
    let remedy = "name the monitoring endpoint with --monitor-url";
    let Some(url) = monitor_url else {
        return Check::bad("disk sync", State::Skipped, "only the monitoring endpoint tells", remedy);
    };
    match varz(url).await {
        Ok(varz) => checks::sync(&varz),
        Err(error) => Check::bad("disk sync", State::Skipped, format!("{url} does not answer: {error}"), remedy),
    }
}

async fn varz(monitor_url: &str) -> reqwest::Result<Value> {
    let http = reqwest::Client::builder().timeout(ANSWER_WITHIN).build()?;
    http.get(format!("{}/varz", monitor_url.trim_end_matches('/'))).send().await?.error_for_status()?.json().await
}

/// Tries to say a fact as the operator, who must not. The header makes the server throw it away should it let it pass.
async fn permissions(broker: &Broker, declaration: &Declaration) -> Check {
    let name = "permissions";
    let remedy = "give the users of the server what nats/users.json lists, and nothing else";
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Stream", format!("not-{}", declaration.stream_name()));
    match broker.request_with_headers(PROBE, headers, Vec::new()).await {
        Err(RequestError::Refused(_)) => Check::ok(name, "the operator may not say a fact, as declared"),
        Ok(_) => Check::failed(name, "the operator may say facts", remedy),
        Err(error) => Check::bad(name, State::Skipped, format!("cannot be tried: {error}"), remedy),
    }
}

async fn pulling(broker: &Broker, stream: &str, service: &str, config: &Config) -> Check {
    let mut seen = Vec::new();
    for _ in 0..LOOKS {
        let Ok(info) = broker.api(&format!("CONSUMER.INFO.{stream}.{service}"), &json!({})).await else { break };
        seen.push(Load::of(&info));
        if seen.last().is_some_and(|load| load.waiting > 0) {
            break;
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    checks::pulling(service, &seen, config.get("max_ack_pending").and_then(Value::as_u64))
}

async fn examine_service(broker: &Broker, service: &str) -> Vec<Check> {
    let replicas = match control::ask_all::<Status>(broker, service, "status").await {
        Ok(answers) => checks::replicas(service, &answers),
        Err(error) => {
            Check::failed(format!("service {service}"), error.to_string(), "use a meshctl of the same release")
        }
    };
    if replicas.state == State::Failed || !dev::WITH_DATABASE.contains(&service) {
        return vec![replicas];
    }
    let outbox = match control::ask::<outbox::Outbox>(broker, service, "outbox").await {
        Ok(outbox) => checks::outbox(&outbox),
        Err(error) => {
            Check::failed(format!("outbox of {service}"), error.to_string(), "look in its log, and at its database")
        }
    };
    vec![replicas, outbox]
}
