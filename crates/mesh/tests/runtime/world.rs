//! The servers of one test and what can be seen in them.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use async_nats::jetstream::consumer::{PullConsumer, pull::OrderedConfig};
use async_nats::{HeaderMap, HeaderValue, jetstream};
use envelope::RawMessage;
use futures_util::StreamExt;
use mesh::Service;
use mesh::config::{Config, RelayMode};
use mesh::testing::Running;
use serde_json::{Value, json};
use sqlx::PgPool;
use testkit::{Nats, NatsOptions, Postgres, TestDatabase, wait};
use uuid::Uuid;

use crate::probe::{SERVICE, service};

/// A patient limit: a test that needs it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A nats-server with stream and durable, and an empty migrated database.
pub(crate) struct World {
    pub(crate) nats: Nats,
    pub(crate) pool: PgPool,
    pub(crate) database_url: String,
    /// Ends with the test.
    _database: Database,
}

/// Where the database is.
enum Database {
    /// On the server that the tests share.
    Clone { _database: TestDatabase },
    /// On a server of the test's own, which outlives this value.
    Server,
}

/// One message of the stream.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) sequence: u64,
    pub(crate) subject: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::with(NatsOptions::new()).await
    }

    pub(crate) async fn with(options: NatsOptions) -> Self {
        Self::around(nats(options).await).await
    }

    pub(crate) async fn around(nats: Nats) -> Self {
        let database = database().await;
        Self {
            nats,
            pool: database.pool().clone(),
            database_url: database.url().to_owned(),
            _database: Database::Clone { _database: database },
        }
    }

    /// With a database on a server of the test's own.
    pub(crate) async fn on(postgres: &Postgres) -> Self {
        postgres.create_role_database(SERVICE, SERVICE).await.unwrap();
        let database_url = postgres.url_for(SERVICE, SERVICE);
        mesh::testing::migrate(&service(), &database_url).await.unwrap();
        let pool = PgPool::connect(&database_url).await.unwrap();
        Self { nats: nats(NatsOptions::new()).await, pool, database_url, _database: Database::Server }
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Both servers, a free port, the relay inside.
    pub(crate) fn config(&self) -> Config {
        let mut config = config(&self.database_url, &self.nats.url());
        // A server without users has no such file.
        config.process.nats_creds = self.nats.creds_file(SERVICE).ok().map(Into::into);
        config
    }

    /// Runs a service with its relay inside.
    pub(crate) async fn run(&self, service: Service) -> Running {
        Running::start(service, self.config()).await.unwrap()
    }

    /// A service that only writes: its facts stay in the outbox.
    pub(crate) async fn writer(&self) -> Running {
        let mut config = self.config();
        config.relay = RelayMode::Off;
        Running::start(service(), config).await.unwrap()
    }

    pub(crate) async fn jetstream(&self) -> jetstream::Context {
        jetstream::new(self.nats.admin().await.unwrap())
    }

    /// Everything in the stream, in its order.
    pub(crate) async fn stored(&self) -> Vec<Stored> {
        let mut stream = self.jetstream().await.get_stream(mesh::STREAM).await.unwrap();
        let last = stream.info().await.unwrap().state.last_sequence;
        if last == 0 {
            return Vec::new();
        }
        let consumer = stream.create_consumer(OrderedConfig::default()).await.unwrap();
        let mut messages = consumer.messages().await.unwrap();
        let mut stored = Vec::new();
        while let Some(message) = messages.next().await {
            let message = message.unwrap();
            let sequence = message.info().unwrap().stream_sequence;
            stored.push(Stored {
                sequence,
                subject: message.subject.to_string(),
                headers: message.headers.clone().unwrap_or_default(),
                body: message.payload.to_vec(),
            });
            if sequence == last {
                break;
            }
        }
        stored
    }

    /// Puts a message on the stream as it is; the server tells copies apart by `id`.
    pub(crate) async fn publish(&self, raw: &RawMessage, id: &str) {
        let mut headers = HeaderMap::new();
        for (name, value) in &raw.headers {
            headers.append(name.as_str(), value.parse::<HeaderValue>().unwrap());
        }
        headers.insert("Nats-Msg-Id", id);
        let body = raw.body.clone().into();
        let jetstream = self.jetstream().await;
        let ack = jetstream.publish_with_headers(raw.subject.clone(), headers, body).await.unwrap();
        assert!(!ack.await.unwrap().duplicate);
    }

    /// Waits until the durable has seen so many messages and none of them is left open.
    pub(crate) async fn until_acknowledged(&self, messages: u64) {
        let stream = self.jetstream().await.get_stream_no_info(mesh::STREAM).await.unwrap();
        wait::until("acknowledgements", PATIENCE, || async {
            let consumer: PullConsumer = stream.get_consumer(SERVICE).await.unwrap();
            let info = consumer.cached_info();
            let open = (info.num_pending, info.num_ack_pending, info.ack_floor.stream_sequence);
            if open == (0, 0, messages) { Ok(()) } else { Err(format!("{open:?} instead of (0, 0, {messages})")) }
        })
        .await
        .unwrap();
    }

    /// A number from the database.
    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        count(self.pool(), sql).await
    }

    /// Waits until the number is what is expected.
    pub(crate) async fn until_count(&self, sql: &'static str, expected: i64) {
        wait::until(sql, PATIENCE, || async move {
            match self.count(sql).await {
                count if count == expected => Ok(()),
                count => Err(format!("{count} instead of {expected}")),
            }
        })
        .await
        .unwrap();
    }

    /// Waits until nothing is left in the outbox.
    pub(crate) async fn until_published(&self) {
        self.until_count("select count(*) from mesh.outbox", 0).await;
    }
}

impl Stored {
    /// A header's value, empty if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.as_str())
    }

    pub(crate) fn id(&self) -> Uuid {
        self.header("ce-id").parse().unwrap()
    }
}

pub(crate) async fn count(pool: &PgPool, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(pool).await.unwrap()
}

/// Lets time pass in which something must not happen.
pub(crate) async fn elapse(time: Duration) {
    let begun = tokio::time::Instant::now();
    wait::until("time to pass", time + PATIENCE, || async {
        if begun.elapsed() >= time { Ok(()) } else { Err("too early") }
    })
    .await
    .unwrap();
}

async fn nats(options: NatsOptions) -> Nats {
    let nats = Nats::start(options).await.unwrap();
    declare_stream(&nats, &stream(), &durable()).await;
    nats
}

pub(crate) async fn database() -> TestDatabase {
    let migrate = |url: String| async move { mesh::testing::migrate(&service(), &url).await };
    testkit::database(SERVICE, migrate).await.unwrap()
}

pub(crate) fn config(database_url: &str, nats_url: &str) -> Config {
    let mut config = Config::new(database_url.parse().unwrap(), nats_url.to_owned());
    config.process.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    config
}

/// The durable as a service needs it.
pub(crate) fn durable() -> Value {
    json!({
        "name": SERVICE, "durable_name": SERVICE, "ack_policy": "explicit", "deliver_policy": "all",
        "ack_wait": 10_000_000_000_u64, "max_deliver": -1, "max_ack_pending": 256, "filter_subject": "evt.>",
    })
}

/// The stream as a mesh needs it.
pub(crate) fn stream() -> Value {
    json!({
        "name": mesh::STREAM, "subjects": ["evt.>"], "retention": "limits", "storage": "file", "discard": "new",
        "num_replicas": 1, "duplicate_window": 120_000_000_000_u64, "allow_atomic": true,
    })
}

/// Creates a stream and a durable.
pub(crate) async fn declare_stream(nats: &Nats, stream: &Value, durable: &Value) {
    let declared = testkit::scratch::dir("declared").unwrap();
    std::fs::write(declared.path().join("stream.json"), stream.to_string()).unwrap();
    std::fs::create_dir(declared.path().join("consumers")).unwrap();
    std::fs::write(declared.path().join("consumers/probe.json"), durable.to_string()).unwrap();
    nats.apply(declared.path()).await.unwrap();
}
