//! The connection to NATS as the operator.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use async_nats::jetstream::{self, context::ContextBuilder};
use async_nats::{Auth, AuthError, Client, ConnectOptions, Event, HeaderMap, Message, Request};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::credentials::{self, Credentials};
use crate::outcome::Failure;
use crate::permissions::inbox_prefix;
use crate::target::Target;

/// How long a server or a service may take to answer.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How many refusals a slow request may fall behind.
const REFUSALS_KEPT: usize = 64;

/// A connection, and what the server refused on it.
#[derive(Debug, Clone)]
pub struct Broker {
    /// For core NATS.
    pub client: Client,
    /// For streams and consumers.
    pub jetstream: jetstream::Context,
    /// What the server refuses is told here only: the reply to a refused request never comes.
    refusals: broadcast::Sender<String>,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// JetStream or a service answered with an error.
    #[error("{description} ({code})")]
    Api {
        /// Of the answer; JetStream's `err_code`.
        code: u64,
        /// In the words of whoever answered.
        description: String,
    },
    /// The server refused the publish or the subscription.
    #[error("the server refused it: {0}")]
    Refused(String),
    /// Nobody listens.
    #[error("nobody answers on {0}")]
    NobodyListens(String),
    /// No answer in time, or the connection is gone.
    #[error("no answer on {subject}: {why}")]
    NoAnswer {
        /// Where it was asked.
        subject: String,
        /// In the client's words.
        why: String,
    },
}

impl RequestError {
    /// No such stream or consumer.
    pub fn is_not_found(&self) -> bool {
        const STREAM_NOT_FOUND: u64 = 10_059;
        const CONSUMER_NOT_FOUND: u64 = 10_014;
        matches!(self, Self::Api { code: STREAM_NOT_FOUND | CONSUMER_NOT_FOUND, .. })
    }

    /// The error of a verb that cannot go on without the answer.
    pub fn during(self, doing: impl Display) -> anyhow::Error {
        match self {
            Self::Api { .. } | Self::Refused(_) => anyhow::Error::new(self).context(doing.to_string()),
            Self::NobodyListens(_) | Self::NoAnswer { .. } => Failure::unreachable(format!("{doing}: {self}")),
        }
    }
}

impl Broker {
    /// Connects as `user`, with the credentials of the target.
    ///
    /// # Errors
    /// A usage error for unreadable credentials; unreachable when the server does not let us in.
    pub async fn connect(target: &Target, user: &str) -> anyhow::Result<Self> {
        let refusals = broadcast::Sender::new(REFUSALS_KEPT);
        let report = refusals.clone();
        let options = options(target.credentials.as_deref())?
            .name("meshctl")
            .custom_inbox_prefix(inbox_prefix(user))
            .connection_timeout(ANSWER_WITHIN)
            .request_timeout(Some(ANSWER_WITHIN))
            .event_callback(move |event| {
                if let Event::ServerError(error) = event {
                    // Nobody may be waiting for an answer just now.
                    let _ = report.send(error.to_string());
                }
                std::future::ready(())
            });
        let client = options.connect(&target.nats_url).await.map_err(|error| {
            Failure::unreachable(format!("cannot connect to NATS at {} ({}): {error}", target.nats_url, target.origin))
        })?;
        let jetstream = ContextBuilder::new().timeout(ANSWER_WITHIN).build(client.clone());
        Ok(Self { client, jetstream, refusals })
    }

    /// Sends a request and waits for the answer, or for the refusal.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub async fn request(&self, subject: &str, body: Vec<u8>) -> Result<Vec<u8>, RequestError> {
        self.request_with_headers(subject, HeaderMap::new(), body).await
    }

    /// The same, with headers.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub async fn request_with_headers(
        &self,
        subject: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Vec<u8>, RequestError> {
        let mut request = Request::new().payload(body.into());
        if !headers.is_empty() {
            request = request.headers(headers);
        }
        // Listens before it asks.
        let refusals = self.refusals.subscribe();
        tokio::select! {
            answer = self.client.send_request(subject.to_owned(), request) => match answer {
                Ok(message) => match service_error(&message) {
                    Some(error) => Err(error),
                    None => Ok(message.payload.into()),
                },
                Err(error) if error.kind() == async_nats::RequestErrorKind::NoResponders => {
                    Err(RequestError::NobodyListens(subject.to_owned()))
                }
                Err(error) => Err(RequestError::NoAnswer { subject: subject.to_owned(), why: error.to_string() }),
            },
            refusal = refusal_of(subject, refusals) => Err(RequestError::Refused(refusal)),
        }
    }

    /// Asks the JetStream API; `subject` is without its prefix `$JS.API.`.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub async fn api<B: Serialize + Sync>(&self, subject: &str, body: &B) -> Result<Value, RequestError> {
        let subject = format!("$JS.API.{subject}");
        let unreadable =
            |error: serde_json::Error| RequestError::NoAnswer { subject: subject.clone(), why: error.to_string() };
        let body = serde_json::to_vec(body).map_err(unreadable)?;
        let answer: Value = serde_json::from_slice(&self.request(&subject, body).await?).map_err(unreadable)?;
        match answer.get("error") {
            None => Ok(answer),
            Some(error) => Err(RequestError::Api {
                code: error["err_code"].as_u64().unwrap_or_default(),
                description: error["description"].as_str().unwrap_or_default().to_owned(),
            }),
        }
    }
}

/// What a service says instead of an answer: in headers, by the rules of the services framework.
pub(crate) fn service_error(message: &Message) -> Option<RequestError> {
    let headers = message.headers.as_ref()?;
    let description = headers.get("Nats-Service-Error")?.to_string();
    let code = headers.get("Nats-Service-Error-Code").and_then(|code| code.as_str().parse().ok()).unwrap_or_default();
    Some(RequestError::Api { code, description })
}

/// Waits until the server refuses the publish to `subject`, or the subscription that would take the reply.
async fn refusal_of(subject: &str, mut refusals: broadcast::Receiver<String>) -> String {
    let quoted = format!("\"{subject}\"");
    loop {
        match refusals.recv().await {
            Ok(refusal) if refusal.contains(&quoted) || refusal.contains("Subscription") => return refusal,
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            // The client is gone, and with it the request.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

fn options(path: Option<&Path>) -> anyhow::Result<ConnectOptions> {
    let Some(path) = path else { return Ok(ConnectOptions::new()) };
    let credentials = Credentials::read(path)?;
    Ok(ConnectOptions::with_auth_callback(move |nonce| std::future::ready(sign(&credentials, &nonce))))
}

fn sign(credentials: &credentials::Credentials, nonce: &[u8]) -> Result<Auth, AuthError> {
    let mut auth = Auth::new();
    auth.signature = Some(credentials.key.sign(nonce).map_err(AuthError::new)?);
    auth.nkey = Some(credentials.key.public_key());
    auth.jwt = credentials.jwt.clone();
    Ok(auth)
}
