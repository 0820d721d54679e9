//! The connection to NATS: one client per process, its events, its replacement when it dies silently.

mod credentials;
mod events;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{self, context::ContextBuilder};
use async_nats::{Client, ConnectOptions, ServerAddr};
use tokio::sync::{Mutex, watch};

pub(crate) use credentials::CredentialsError;
pub(crate) use events::BrokerEvents;

use crate::clock::SharedClock;
use crate::context::ServiceContext;

/// The one stream that carries all facts.
pub const STREAM: &str = "EVT";

/// How long a publish waits for its acknowledgement, and an API call for its answer.
pub(crate) const ACK_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a round trip to the server may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Publishes in flight before `send_publish` makes its caller wait.
const ACKS_IN_FLIGHT_MAX: usize = 2_048;

/// Where the broker is and who we are there.
#[derive(Debug, Clone)]
pub(crate) struct BrokerOptions {
    pub(crate) url: String,
    /// `.creds` file or bare nkey seed; read again at every connect, so that a rotated file takes effect.
    pub(crate) credentials: Option<PathBuf>,
}

/// The process's connection to NATS.
///
/// `async_nats` reconnects by itself; what it cannot do is notice that its own connection task has died. [`Broker::replace`]
/// makes a new client then, once for all that ask.
#[derive(Debug)]
pub(crate) struct Broker {
    options: BrokerOptions,
    context: Arc<ServiceContext>,
    events: Arc<BrokerEvents>,
    current: watch::Sender<Connection>,
    replacing: Mutex<()>,
}

/// A client and which one in a row it is.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) jetstream: jetstream::Context,
    pub(crate) generation: u64,
}

/// Why no client could be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrokerError {
    #[error("connect to NATS at {url}")]
    Connect { url: String, source: async_nats::ConnectError },
    #[error("`{url}` is no NATS address")]
    Address { url: String, source: std::io::Error },
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
}

impl Broker {
    /// Makes a client. An unreachable server is no error: the client keeps trying, and the service accepts work meanwhile
    /// (its facts wait in the outbox). An unreadable credentials file is.
    pub(crate) async fn connect(
        options: BrokerOptions,
        context: Arc<ServiceContext>,
    ) -> Result<Arc<Self>, BrokerError> {
        let events = Arc::new(BrokerEvents::default());
        let connection = open(&options, &context, &events, 0).await?;
        let (current, _) = watch::channel(connection);
        Ok(Arc::new(Self { options, context, events, current, replacing: Mutex::new(()) }))
    }

    /// The client in use.
    pub(crate) fn connection(&self) -> Connection {
        self.current.borrow().clone()
    }

    /// What the client reported.
    pub(crate) fn events(&self) -> &Arc<BrokerEvents> {
        &self.events
    }

    /// Replaces the client of `generation`; does nothing when another caller already has.
    pub(crate) async fn replace(&self, generation: u64) -> Result<(), BrokerError> {
        let _one_at_a_time = self.replacing.lock().await;
        if self.current.borrow().generation != generation {
            return Ok(());
        }
        tracing::warn!(generation, "replacing the NATS client");
        self.events.listen_to(generation + 1);
        let connection = open(&self.options, &self.context, &self.events, generation + 1).await?;
        self.current.send_replace(connection);
        Ok(())
    }

    /// Waits until the client of `generation` has been replaced.
    pub(crate) async fn replaced(&self, generation: u64) {
        // The sender lives as long as `self`.
        let _ = self.current.subscribe().wait_for(|connection| connection.generation > generation).await;
    }

    /// Whether the client has died: it takes nothing any more, or says that it is connected and gets no answer. While it
    /// is merely disconnected it is not dead; it connects again by itself.
    pub(crate) async fn is_dead(&self) -> bool {
        let client = self.connection().client;
        match tokio::time::timeout(PATIENCE, client.flush()).await {
            Ok(flushed) => flushed.is_err(),
            Err(_) => self.events.is_connected(),
        }
    }

    /// Goes to another server, because this one announced that it shuts down.
    pub(crate) async fn leave_server(&self) {
        if let Err(error) = self.connection().client.force_reconnect().await {
            tracing::warn!(%error, "the client did not leave the server that shuts down");
        }
    }

    /// Whether a round trip to the server succeeds within two seconds. `connection_state()` would not tell: it stays
    /// `Connected` when the connection task is dead.
    pub(crate) async fn is_alive(&self) -> bool {
        let client = self.connection().client;
        matches!(tokio::time::timeout(PATIENCE, client.flush()).await, Ok(Ok(()))) && self.events.is_connected()
    }
}

/// The servers of a cluster, separated by commas.
fn servers(urls: &str) -> Result<Vec<ServerAddr>, BrokerError> {
    let address = |url: &str| url.parse().map_err(|source| BrokerError::Address { url: url.to_owned(), source });
    urls.split(',').map(str::trim).filter(|url| !url.is_empty()).map(address).collect()
}

async fn open(
    options: &BrokerOptions,
    context: &ServiceContext,
    events: &Arc<BrokerEvents>,
    generation: u64,
) -> Result<Connection, BrokerError> {
    let base = match &options.credentials {
        Some(path) => credentials::connect_options(path)?,
        None => ConnectOptions::new(),
    };
    let jitter = Arc::clone(&context.clock);
    let seen = Arc::clone(events);
    let client = base
        .name(format!("{}/{}", context.name, context.instance))
        // Replies and pulled messages of one service are never visible to another.
        .custom_inbox_prefix(format!("_INBOX_{}", context.name))
        .ping_interval(Duration::from_secs(5))
        .connection_timeout(Duration::from_secs(5))
        .request_timeout(Some(ACK_TIMEOUT))
        .reconnect_delay_callback(move |attempts| reconnect_delay(attempts, &jitter))
        .event_callback(move |event| {
            seen.record(generation, &event);
            std::future::ready(())
        })
        .retry_on_initial_connect()
        .connect(servers(&options.url)?)
        .await
        .map_err(|source| BrokerError::Connect { url: options.url.clone(), source })?;
    let jetstream =
        ContextBuilder::new().timeout(ACK_TIMEOUT).max_ack_inflight(ACKS_IN_FLIGHT_MAX).build(client.clone());
    Ok(Connection { client, jetstream, generation })
}

/// 200 ms doubled up to 1 s, jittered down to half of it: after the loss of a server its clients do not return in one wave,
/// and none keeps its facts waiting for long once the server is back.
fn reconnect_delay(attempts: usize, clock: &SharedClock) -> Duration {
    let backoff = crate::Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(1) };
    crate::clock::jittered(backoff.delay(u32::try_from(attempts).unwrap_or(u32::MAX)), &**clock)
}

#[cfg(test)]
mod tests {
    use super::servers;

    #[test]
    fn a_list_of_servers_is_taken_apart() {
        let list = servers("nats://a:4222, nats://b:4223").unwrap();
        let hosts: Vec<_> = list.iter().map(|server| (server.host().to_owned(), server.port())).collect();
        assert_eq!(hosts, [("a".to_owned(), 4222), ("b".to_owned(), 4223)]);
        assert!(servers("nats://a:notaport").is_err());
    }
}
