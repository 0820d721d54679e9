//! The client of the shop: one request, or one request until there is an answer that stays.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use reqwest::header::HeaderMap;
use serde_json::Value;
use testkit::wait;

use super::{Replica, Service, Shop};

/// How long a client repeats a request that has no answer yet. Longer than any fault of a test.
const PATIENCE: Duration = Duration::from_secs(90);

pub use reqwest::Method;

/// One request, which may be sent as often as it takes.
#[derive(Debug, Clone)]
pub struct Request {
    service: Service,
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// One answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, when it is JSON; else null.
    pub body: Value,
    /// The body as it came.
    pub text: String,
}

impl Request {
    /// A request without a body.
    #[must_use]
    pub fn new(service: Service, method: Method, path: impl Into<String>) -> Request {
        Request { service, method, path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Request {
        self.header("content-type", "application/json").body(body.to_string())
    }

    /// With a body of any bytes.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = body.into();
        self
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Request {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// With an `Idempotency-Key`.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Request {
        self.header("idempotency-key", key)
    }
}

impl Reply {
    /// A header as text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether the work was done, now or earlier.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether repeating the request may bring another answer: a server error, or the first request still runs.
    #[must_use]
    pub fn may_change(&self) -> bool {
        self.status >= 500 || self.headers.contains_key("retry-after")
    }

    /// The JSON body of a success.
    ///
    /// # Errors
    /// When it is none.
    pub fn success(self) -> Result<Value> {
        if self.is_success() { Ok(self.body) } else { Err(anyhow!("the answer was {}: {}", self.status, self.text)) }
    }
}

impl Shop {
    /// Sends a request once, to one of the replicas in turn.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn send(&self, request: &Request) -> Result<Reply> {
        let turn = usize::try_from(self.next_number()).unwrap_or_default();
        let address = self.in_turn(request.service, turn).address().await?;
        let url = format!("http://{address}{}", request.path);
        let mut sending = self.http.request(request.method.clone(), url).body(request.body.clone());
        for (name, value) in &request.headers {
            sending = sending.header(name, value);
        }
        let response = sending.send().await.with_context(|| format!("{} {}", request.method, request.path))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await?;
        Ok(Reply { status, headers, body: serde_json::from_str(&text).unwrap_or_default(), text })
    }

    fn in_turn(&self, service: Service, turn: usize) -> &Replica {
        let moving: Vec<&Replica> = self.replicas(service).iter().filter(|replica| !replica.is_frozen()).collect();
        moving.get(turn % moving.len().max(1)).copied().unwrap_or(self.replica(service))
    }

    /// Sends a request until there is an answer that stays: what a careful client does. A request that changes something
    /// must have a key.
    ///
    /// # Errors
    /// When there is none for longer than any fault of a test lasts.
    pub async fn settle(&self, request: &Request) -> Result<Reply> {
        let awaited = format!("an answer to {} {} of {}", request.method, request.path, request.service);
        let reply = wait::until(&awaited, PATIENCE, || async {
            match self.send(request).await {
                Ok(reply) if reply.may_change() => Err(format!("{}: {}", reply.status, reply.text)),
                Ok(reply) => Ok(reply),
                Err(error) => Err(format!("{error:#}")),
            }
        });
        Ok(reply.await?)
    }

    /// A metric of the first replica of a service, summed over its labels.
    ///
    /// # Errors
    /// When the service does not answer.
    pub async fn metric(&self, service: Service, name: &str) -> Result<u64> {
        let text = self.settle(&Request::new(service, Method::GET, "/metrics")).await?.text;
        let samples = text.lines().filter_map(|line| line.rsplit_once(' '));
        let own = samples.filter(|(series, _)| series.split('{').next() == Some(name));
        Ok(own.filter_map(|(_, value)| value.parse::<u64>().ok()).sum())
    }

    /// A key that no other request of this shop has.
    #[must_use]
    pub fn next_key(&self) -> String {
        format!("e2e-{}", self.next_number())
    }
}
