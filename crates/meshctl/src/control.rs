//! Questions to running services, `mesh.ctl.<service>.<verb>`.

use std::time::Duration;

use async_nats::StatusCode;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::broker::{ANSWER_WITHIN, Broker, RequestError, service_error};

/// How long after an answer another replica may still answer.
const STRAGGLERS_WITHIN: Duration = Duration::from_millis(300);

/// Asks any replica of a service.
///
/// # Errors
/// See [`RequestError`]; an answer in another form is one too.
pub async fn ask<A: DeserializeOwned>(broker: &Broker, service: &str, verb: &str) -> Result<A, RequestError> {
    ask_with(broker, service, verb, Vec::new()).await
}

/// The same with a body.
///
/// # Errors
/// See [`ask`].
pub async fn ask_with<A: DeserializeOwned>(
    broker: &Broker,
    service: &str,
    verb: &str,
    body: Vec<u8>,
) -> Result<A, RequestError> {
    let subject = format!("mesh.ctl.{service}.{verb}");
    read(&subject, &broker.request(&subject, body).await?)
}

/// Asks any replica of a service something in particular.
///
/// # Errors
/// As [`ask`].
pub async fn ask_for<A: DeserializeOwned>(
    broker: &Broker,
    service: &str,
    verb: &str,
    question: &Value,
) -> Result<A, RequestError> {
    let subject = format!("mesh.ctl.{service}.{verb}");
    read(&subject, &broker.request(&subject, question.to_string().into_bytes()).await?)
}

/// Asks every replica of a service; none may answer.
///
/// # Errors
/// When the question cannot be asked, or an answer has another form.
pub async fn ask_all<A: DeserializeOwned>(broker: &Broker, service: &str, verb: &str) -> Result<Vec<A>, RequestError> {
    let subject = format!("mesh.ctl.{service}.{verb}");
    let lost = |why: String| RequestError::NoAnswer { subject: subject.clone(), why };
    let inbox = broker.client.new_inbox();
    let mut replies = broker.client.subscribe(inbox.clone()).await.map_err(|error| lost(error.to_string()))?;
    let asked = broker.client.publish_with_reply(subject.clone(), inbox, "".into()).await;
    asked.map_err(|error| lost(error.to_string()))?;
    let mut answers = Vec::new();
    let mut deadline = Instant::now() + ANSWER_WITHIN;
    while let Ok(Some(message)) = timeout_at(deadline, replies.next()).await {
        if message.status == Some(StatusCode::NO_RESPONDERS) {
            break;
        }
        if let Some(error) = service_error(&message) {
            return Err(error);
        }
        answers.push(read(&subject, &message.payload)?);
        deadline = Instant::now() + STRAGGLERS_WITHIN;
    }
    Ok(answers)
}

fn read<A: DeserializeOwned>(subject: &str, answer: &[u8]) -> Result<A, RequestError> {
    serde_json::from_slice(answer).map_err(|error| RequestError::NoAnswer {
        subject: subject.to_owned(),
        why: format!("its form is not known here: {error}"),
    })
}
