//! The server of one test and what can be seen in it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::{HeaderMap, HeaderValue, jetstream};
use envelope::RawMessage;
use futures_util::{StreamExt, TryStreamExt};
use mesh::KvService;
use mesh::config::ProcessConfig;
use mesh::testing::{RunningKv, message};
use serde_json::{Value, json};
use testkit::{Nats, NatsOptions, wait};
use uuid::Uuid;

use crate::probe::{Happened, SERVICE};

/// A patient limit: a test that needs it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

const HOUR: u64 = 3_600_000_000_000;

/// A nats-server with stream, durable and buckets.
pub(crate) struct World {
    pub(crate) nats: Nats,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::declared(&[inbox(), dead()]).await
    }

    pub(crate) async fn declared(buckets: &[Value]) -> Self {
        let nats = Nats::start(NatsOptions::new()).await.unwrap();
        let declared = testkit::scratch::dir("declared").unwrap();
        let folder = declared.path();
        std::fs::write(folder.join("stream.json"), stream().to_string()).unwrap();
        for (kind, file, config) in [("consumers", SERVICE, &durable())]
            .into_iter()
            .chain(buckets.iter().map(|bucket| ("buckets", bucket["name"].as_str().unwrap(), bucket)))
        {
            std::fs::create_dir_all(folder.join(kind)).unwrap();
            std::fs::write(folder.join(kind).join(format!("{file}.json")), config.to_string()).unwrap();
        }
        nats.apply(folder).await.unwrap();
        Self { nats }
    }

    pub(crate) fn config(&self) -> ProcessConfig {
        let mut config = ProcessConfig::new(self.nats.url());
        config.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        config
    }

    pub(crate) async fn run(&self, service: KvService) -> RunningKv {
        RunningKv::start(service, self.config()).await.unwrap()
    }

    pub(crate) async fn jetstream(&self) -> jetstream::Context {
        jetstream::new(self.nats.admin().await.unwrap())
    }

    /// Puts a fact on the stream; the server tells copies apart by `copy`.
    pub(crate) async fn publish(&self, fact: &Happened, id: Uuid, copy: &str) {
        self.publish_raw(&message(fact, id).unwrap(), copy).await;
    }

    pub(crate) async fn publish_raw(&self, raw: &RawMessage, copy: &str) {
        let mut headers = HeaderMap::new();
        for (name, value) in &raw.headers {
            headers.append(name.as_str(), value.parse::<HeaderValue>().unwrap());
        }
        headers.insert("Nats-Msg-Id", copy);
        let jetstream = self.jetstream().await;
        let ack = jetstream.publish_with_headers(raw.subject.clone(), headers, raw.body.clone().into()).await.unwrap();
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

    /// Every entry of a bucket by key.
    pub(crate) async fn entries(&self, bucket: &str) -> Vec<(String, Value)> {
        let store = self.jetstream().await.get_key_value(bucket).await.unwrap();
        let mut keys: Vec<String> = store.keys().await.unwrap().try_collect().await.unwrap();
        keys.sort();
        futures_util::stream::iter(keys)
            .then(|key| {
                let store = &store;
                async move {
                    let value = store.get(&key).await.unwrap().unwrap_or_default();
                    (key, serde_json::from_slice(&value).unwrap())
                }
            })
            .collect()
            .await
    }

    /// The entry of the inbox about a fact.
    pub(crate) async fn entry(&self, id: Uuid) -> Value {
        let key = format!("send-note.{id}");
        let entries = self.entries("inbox_probe").await;
        entries.into_iter().find(|(entry, _)| *entry == key).map(|(_, value)| value).unwrap_or_default()
    }

    /// The dead letters.
    pub(crate) async fn letters(&self) -> Vec<Value> {
        let entries = self.entries("dead_probe").await;
        entries.into_iter().filter(|(key, _)| !key.starts_with("part.")).map(|(_, letter)| letter).collect()
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

fn stream() -> Value {
    json!({
        "name": mesh::STREAM, "subjects": ["evt.>"], "retention": "limits", "storage": "file", "discard": "new",
        "duplicate_window": 120_000_000_000_u64, "max_age": HOUR,
    })
}

fn durable() -> Value {
    json!({
        "name": SERVICE, "durable_name": SERVICE, "ack_policy": "explicit", "deliver_policy": "all",
        "ack_wait": 10_000_000_000_u64, "max_deliver": -1, "max_ack_pending": 256, "filter_subject": "evt.>",
    })
}

/// A bucket as a service needs it.
pub(crate) fn bucket(name: &str, max_age: u64) -> Value {
    json!({
        "name": format!("KV_{name}_{SERVICE}"), "subjects": [format!("$KV.{name}_{SERVICE}.>")], "storage": "file",
        "retention": "limits", "discard": "new", "max_msgs_per_subject": 1, "max_age": max_age,
        "allow_rollup_hdrs": true, "allow_msg_ttl": true,
    })
}

pub(crate) fn inbox() -> Value {
    bucket("inbox", 2 * HOUR)
}

pub(crate) fn dead() -> Value {
    bucket("dead", 0)
}
