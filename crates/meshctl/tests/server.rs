//! `streams` and the declared permissions against a real server.
#![expect(clippy::unwrap_used, reason = "a step of a test that fails is a failed test")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::{Client, ConnectOptions};
use futures_util::StreamExt;
use meshctl::broker::{Broker, RequestError};
use meshctl::declaration::Declaration;
use meshctl::dev::servers::nats_users;
use meshctl::permissions::OPERATOR;
use meshctl::streams::{self, Plan};
use meshctl::target::Target;
use serde_json::json;
use testkit::{Nats, NatsOptions};

/// Longer than any answer takes, shorter than a test may hang.
const ANSWER: Duration = Duration::from_secs(5);

fn declared() -> Declaration {
    Declaration::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nats")).unwrap()
}

async fn server(declaration: &Declaration) -> (Nats, Broker) {
    let nats = Nats::start(NatsOptions::new().users(nats_users(&declaration.users))).await.unwrap();
    let broker = broker(&nats, OPERATOR).await;
    (nats, broker)
}

async fn broker(nats: &Nats, user: &str) -> Broker {
    let target = Target {
        nats_url: nats.url(),
        credentials: Some(PathBuf::from(nats.creds_file(user).unwrap())),
        dev: None,
        origin: "the test".to_owned(),
    };
    Broker::connect(&target, user).await.unwrap()
}

async fn plan(broker: &Broker, declaration: &Declaration) -> Plan {
    streams::plan(broker, declaration).await.unwrap()
}

#[tokio::test]
async fn apply_makes_the_server_what_is_declared_and_diff_sees_drift() {
    let declaration = declared();
    let (_nats, operator) = server(&declaration).await;
    assert!(!plan(&operator, &declaration).await.is_empty());
    assert!(streams::apply(&operator, &declaration).await.unwrap().applied);
    let after = plan(&operator, &declaration).await;
    assert!(after.is_empty(), "{after}");

    let mut drifted = declaration.consumers["payments"].clone();
    drifted.insert("max_deliver".into(), json!(3));
    let request = json!({ "stream_name": "EVT", "config": drifted, "action": "update" });
    operator.api("CONSUMER.CREATE.EVT.payments", &request).await.unwrap();
    let drift = plan(&operator, &declaration).await;
    let expected = "  max_deliver: 3 -> -1";
    assert!(drift.to_string().contains(expected), "{drift}");
    assert!(streams::apply(&operator, &declaration).await.unwrap().applied);
    assert!(plan(&operator, &declaration).await.is_empty());
}

#[tokio::test]
async fn apply_changes_nothing_when_a_part_would_lose_facts() {
    let declaration = declared();
    let (_nats, operator) = server(&declaration).await;
    streams::apply(&operator, &declaration).await.unwrap();
    let mut tighter = declaration.clone();
    tighter.stream.insert("max_age".into(), json!(1_000_000_000_u64));
    tighter.consumers.get_mut("orders").unwrap().insert("max_ack_pending".into(), json!(1));
    let applied = streams::apply(&operator, &tighter).await.unwrap();
    assert!(!applied.applied);
    assert!(plan(&operator, &declaration).await.is_empty());
}

#[tokio::test]
async fn an_undeclared_consumer_is_reported_and_left_alone_and_a_passing_reader_is_not() {
    let declaration = declared();
    let (_nats, operator) = server(&declaration).await;
    streams::apply(&operator, &declaration).await.unwrap();
    for (name, config) in [
        ("reports", json!({ "name": "reports", "durable_name": "reports", "ack_policy": "explicit" })),
        ("reader", json!({ "name": "reader", "ack_policy": "none", "inactive_threshold": 60_000_000_000_u64 })),
    ] {
        let request = json!({ "stream_name": "EVT", "config": config, "action": "create" });
        operator.api(&format!("CONSUMER.CREATE.EVT.{name}"), &request).await.unwrap();
    }
    assert_eq!(streams::apply(&operator, &declaration).await.unwrap().plan.unknown_consumers, ["reports"]);
    let after = plan(&operator, &declaration).await;
    assert_eq!(after.unknown_consumers, ["reports"]);
    assert!(!after.is_empty() && !after.changes_anything());
}

#[tokio::test]
async fn a_service_can_do_its_work_with_its_permissions() {
    let declaration = declared();
    let (nats, operator) = server(&declaration).await;
    streams::apply(&operator, &declaration).await.unwrap();
    let orders = broker(&nats, "orders").await;
    let stored = orders.jetstream.publish("evt.orders.order_created.v1.7", "{}".into()).await.unwrap();
    assert_eq!(stored.await.unwrap().sequence, 1);

    let payments = broker(&nats, "payments").await;
    payments.api("STREAM.INFO.EVT", &json!({})).await.unwrap();
    let looked_up = payments.api("STREAM.MSG.GET.EVT", &json!({ "seq": 1 })).await.unwrap();
    assert_eq!(looked_up["message"]["subject"], "evt.orders.order_created.v1.7");
    payments.api("CONSUMER.INFO.EVT.payments", &json!({})).await.unwrap();
    let stream = payments.jetstream.get_stream_no_info("EVT").await.unwrap();
    let consumer: PullConsumer = stream.get_consumer("payments").await.unwrap();
    let mut facts = consumer.fetch().max_messages(1).messages().await.unwrap();
    let fact = facts.next().await.unwrap().unwrap();
    assert_eq!(fact.subject.as_str(), "evt.orders.order_created.v1.7");
    fact.double_ack().await.unwrap();
    let consumer = operator.api("CONSUMER.INFO.EVT.payments", &json!({})).await.unwrap();
    assert_eq!(consumer["ack_floor"]["stream_seq"], 1);
}

#[tokio::test]
async fn a_service_answers_control_requests_of_the_operator() {
    let (nats, operator) = server(&declared()).await;
    let orders = client(&nats, "orders").await;
    let mut requests = orders.subscribe("mesh.ctl.orders.status").await.unwrap();
    round_trip(&orders).await;
    let answering = tokio::spawn(async move {
        let request = requests.next().await.unwrap();
        orders.publish(request.reply.unwrap(), "ready".into()).await.unwrap();
        orders.flush().await.unwrap();
    });
    assert_eq!(operator.request("mesh.ctl.orders.status", Vec::new()).await.unwrap(), b"ready");
    answering.await.unwrap();
}

#[tokio::test]
async fn what_is_not_allowed_is_refused_and_named() {
    let declaration = declared();
    let (nats, operator) = server(&declaration).await;
    streams::apply(&operator, &declaration).await.unwrap();
    let payments = broker(&nats, "payments").await;
    let own = json!({ "name": "all", "durable_name": "all", "ack_policy": "explicit" });
    let attempts = [
        ("evt.orders.order_confirmed.v1.7", "{}".to_owned()),
        ("$JS.API.CONSUMER.CREATE.EVT.all", json!({ "stream_name": "EVT", "config": own }).to_string()),
        ("$JS.API.CONSUMER.CREATE.EVT.payments", json!({ "stream_name": "EVT", "config": own }).to_string()),
        ("$JS.API.CONSUMER.INFO.EVT.orders", String::new()),
        ("$JS.API.CONSUMER.MSG.NEXT.EVT.orders", "1".to_owned()),
        ("$JS.API.CONSUMER.DELETE.EVT.payments", String::new()),
        ("$JS.API.STREAM.MSG.DELETE.EVT", json!({ "seq": 1 }).to_string()),
        ("$JS.API.STREAM.PURGE.EVT", String::new()),
        ("$JS.API.DIRECT.GET.EVT", json!({ "seq": 1 }).to_string()),
        ("$JS.ACK.EVT.orders.1.1.1.1.0", String::new()),
        ("mesh.ctl.orders.redrive", String::new()),
    ];
    for (subject, body) in attempts {
        let refused = payments.request(subject, body.into_bytes()).await.unwrap_err();
        assert!(matches!(&refused, RequestError::Refused(text) if text.contains(subject)), "{subject}: {refused}");
    }
    let stored = operator.api("STREAM.INFO.EVT", &json!({})).await.unwrap();
    assert_eq!(stored["state"]["last_seq"], 0);
}

#[tokio::test]
async fn the_operator_reads_everything_and_says_nothing() {
    let declaration = declared();
    let (_nats, operator) = server(&declaration).await;
    streams::apply(&operator, &declaration).await.unwrap();
    for service in events::catalogue::names() {
        let fact = format!("evt.{service}.anything.v1.7");
        let refused = operator.request(&fact, b"{}".to_vec()).await.unwrap_err();
        assert!(matches!(refused, RequestError::Refused(_)), "{refused}");
    }
}

#[tokio::test]
async fn nobody_listens_to_anothers_replies() {
    let (nats, _operator) = server(&declared()).await;
    let payments = broker(&nats, "payments").await;
    let mut overheard = payments.client.subscribe("_INBOX_orders.>").await.unwrap();
    let mut facts = payments.client.subscribe("evt.>").await.unwrap();
    round_trip(&payments.client).await;
    let orders = client(&nats, "orders").await;
    // Answered on the inbox of orders, where only orders hears it.
    orders.publish("evt.orders.order_created.v1.7", "{}".into()).await.unwrap();
    round_trip(&orders).await;
    // Whatever the server had for payments was sent before this answer.
    round_trip(&payments.client).await;
    for heard in [&mut overheard, &mut facts] {
        let message = tokio::time::timeout(Duration::from_millis(1), heard.next()).await;
        assert!(!matches!(message, Ok(Some(_))), "{message:?}");
    }
}

async fn client(nats: &Nats, user: &str) -> Client {
    let seed = std::fs::read_to_string(nats.creds_file(user).unwrap()).unwrap();
    let options = ConnectOptions::with_nkey(seed.trim().to_owned());
    let options = options.custom_inbox_prefix(format!("_INBOX_{user}")).request_timeout(Some(ANSWER));
    options.connect(nats.url()).await.unwrap()
}

/// Returns when the server has taken everything that the client sent before.
async fn round_trip(client: &Client) {
    client.request("$JS.API.STREAM.INFO.EVT", "".into()).await.unwrap();
}
