//! The servers of one test and what can be seen in them.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::{HeaderMap, HeaderValue, jetstream};
use envelope::Event;
use futures_util::TryStreamExt;
use mesh::config::ProcessConfig;
use mesh::testing::{RunningKv, message};
use notifications::Settings;
use notifications::settings::Transport;
use serde_json::Value;
use testkit::{Nats, NatsOptions, Smtp, wait};
use uuid::Uuid;

/// A patient limit: a test that needs it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

const SERVICE: &str = "notifications";

/// A nats-server with everything that is declared.
pub(crate) struct World {
    nats: Nats,
}

impl World {
    pub(crate) async fn start() -> Self {
        let nats = Nats::start(NatsOptions::new()).await.unwrap();
        nats.apply(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nats")).await.unwrap();
        Self { nats }
    }

    pub(crate) async fn run(&self, smtp: &Smtp) -> RunningKv {
        self.run_with(Transport::Smtp(smtp.url())).await
    }

    pub(crate) async fn run_into(&self, directory: &Path) -> RunningKv {
        self.run_with(Transport::Files(directory.to_owned())).await
    }

    async fn run_with(&self, transport: Transport) -> RunningKv {
        let settings = Settings {
            transport,
            from: "The shop <shop@shop.example>".to_owned(),
            customer_domain: "customers.example".to_owned(),
            smtp_timeout: Duration::from_secs(2),
        };
        let mut config = ProcessConfig::new(self.nats.url());
        config.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        RunningKv::start(notifications::service(settings).unwrap(), config).await.unwrap()
    }

    async fn jetstream(&self) -> jetstream::Context {
        jetstream::new(self.nats.admin().await.unwrap())
    }

    /// Puts a fact on the stream; the server tells copies apart by `copy`.
    pub(crate) async fn publish<E: Event>(&self, fact: &E, id: Uuid, copy: &str) {
        let raw = message(fact, id).unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in &raw.headers {
            headers.append(name.as_str(), value.parse::<HeaderValue>().unwrap());
        }
        headers.insert("Nats-Msg-Id", format!("{id}-{copy}"));
        let jetstream = self.jetstream().await;
        let ack = jetstream.publish_with_headers(raw.subject, headers, raw.body.into()).await.unwrap();
        assert!(!ack.await.unwrap().duplicate);
    }

    /// Waits until everything on the stream is acknowledged.
    pub(crate) async fn until_acknowledged(&self) {
        let stream = self.jetstream().await.get_stream_no_info(mesh::STREAM).await.unwrap();
        wait::until("acknowledgements", PATIENCE, || async {
            let consumer: PullConsumer = stream.get_consumer(SERVICE).await.unwrap();
            let info = consumer.cached_info();
            match (info.num_pending, info.num_ack_pending) {
                (0, 0) => Ok(()),
                open => Err(format!("{open:?} are open")),
            }
        })
        .await
        .unwrap();
    }

    /// What the inbox says about a delivery.
    pub(crate) async fn entry(&self, subscriber: &str, fact: Uuid) -> Value {
        let store = self.jetstream().await.get_key_value("inbox_notifications").await.unwrap();
        let value = store.get(format!("{subscriber}.{fact}")).await.unwrap();
        value.map(|value| serde_json::from_slice(&value).unwrap()).unwrap_or_default()
    }

    /// Waits until an execution of the delivery has begun.
    pub(crate) async fn until_claimed(&self, subscriber: &str, fact: Uuid) {
        wait::until("a claim", PATIENCE, || async {
            match self.entry(subscriber, fact).await {
                Value::Null => Err("no entry"),
                _ => Ok(()),
            }
        })
        .await
        .unwrap();
    }

    /// The dead letters.
    pub(crate) async fn letters(&self) -> Vec<Value> {
        let store = self.jetstream().await.get_key_value("dead_notifications").await.unwrap();
        let keys: Vec<String> = store.keys().await.unwrap().try_collect().await.unwrap();
        let mut letters = Vec::new();
        for key in keys {
            let value = store.get(&key).await.unwrap().unwrap();
            letters.push(serde_json::from_slice(&value).unwrap());
        }
        letters
    }
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
