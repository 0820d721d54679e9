//! NATS: durable by default, users held to their permissions, streams from files, restarts on the same ports.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use async_nats::jetstream;
use testkit::{Error, Nats, NatsCluster, NatsIdentity, NatsOptions, NatsUser, install, wait};

const STREAM: &str = r#"{ "name": "EVT", "subjects": ["evt.>"], "storage": "file", "num_replicas": 3,
    "duplicate_window": 120000000000, "allow_atomic": true }"#;
const CONSUMER: &str = r#"{ "durable_name": "payments", "ack_policy": "explicit", "ack_wait": 30000000000,
    "filter_subjects": ["evt.orders.>", "evt.inventory.>"] }"#;

/// A directory as `apply` reads it.
fn declared(stream: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("stream.json"), stream).unwrap();
    fs::create_dir(directory.path().join("consumers")).unwrap();
    fs::write(directory.path().join("consumers/payments.json"), CONSUMER).unwrap();
    directory
}

async fn publish(nats: &Nats, subject: &str) -> u64 {
    let jetstream = jetstream::new(nats.admin().await.unwrap());
    jetstream.publish(subject.to_owned(), "{}".into()).await.unwrap().await.unwrap().sequence
}

#[tokio::test]
async fn a_server_syncs_always_and_keeps_streams_and_ports_over_a_kill() {
    let nats = Nats::start(NatsOptions::new()).await.unwrap();
    assert!(nats.version() >= install::NATS_SERVER_OLDEST);
    assert_eq!(nats.monitor("/jsz").await.unwrap()["config"]["sync_always"], true);

    let directory = declared(STREAM);
    nats.apply(directory.path()).await.unwrap();
    nats.apply(directory.path()).await.unwrap(); // the same again is left alone
    assert_eq!(publish(&nats, "evt.orders.a").await, 1);

    let url = nats.url();
    nats.kill9().await;
    nats.restart().await.unwrap();
    assert_eq!(nats.url(), url);
    assert_eq!(publish(&nats, "evt.inventory.b").await, 2);
    nats.term().await.unwrap();
    nats.restart().await.unwrap();

    let jetstream = jetstream::new(nats.admin().await.unwrap());
    let stream = jetstream.get_stream("EVT").await.unwrap();
    let consumer: jetstream::consumer::PullConsumer = stream.get_consumer("payments").await.unwrap();
    assert_eq!(consumer.cached_info().num_pending, 2);
    assert_eq!(consumer.cached_info().config.filter_subjects, ["evt.orders.>", "evt.inventory.>"]);
    assert!(stream.cached_info().config.allow_atomic_publish);
}

#[tokio::test]
async fn a_stream_that_differs_is_refused_with_the_servers_reason() {
    let nats = Nats::start(NatsOptions::new()).await.unwrap();
    nats.apply(declared(STREAM).path()).await.unwrap();
    let other = STREAM.replace("evt.>", "other.>");
    let Err(Error::JetStream { code, .. }) = nats.apply(declared(&other).path()).await else { panic!("accepted") };
    assert_eq!(code, 10058); // stream name already in use with a different configuration
}

#[tokio::test]
async fn users_may_do_what_is_listed_and_nothing_else() {
    let orders = NatsUser::new("orders")
        .publish(["evt.orders.>", "echo"])
        .subscribe(["_INBOX_orders.>"])
        .inbox_prefix("_INBOX_orders");
    let responder = NatsUser::new("responder")
        .identity(NatsIdentity::Password("secret".to_owned()))
        .subscribe(["echo"])
        .allow_responses();
    let mute = NatsUser::new("mute");
    let nats = Nats::start(NatsOptions::new().users([orders, responder, mute])).await.unwrap();
    nats.apply(declared(STREAM).path()).await.unwrap();

    let file = nats.creds_file("orders").unwrap();
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(file).unwrap().starts_with("SU"));
    assert!(async_nats::connect(nats.url()).await.is_err(), "a stranger was admitted");

    let mut jetstream = jetstream::new(nats.connect("orders").await.unwrap());
    jetstream.set_timeout(Duration::from_millis(500));
    jetstream.publish("evt.orders.a", "{}".into()).await.unwrap().await.unwrap();
    assert!(jetstream.publish("evt.payments.a", "{}".into()).await.unwrap().await.is_err());

    let responder = nats.connect("responder").await.unwrap();
    let mut requests = responder.subscribe("echo").await.unwrap();
    responder.flush().await.unwrap();
    tokio::spawn(async move {
        use futures_util::StreamExt;
        let request = requests.next().await.unwrap();
        responder.publish(request.reply.unwrap(), "heard".into()).await.unwrap();
        responder.flush().await.unwrap();
    });
    let answer = nats.connect("orders").await.unwrap().request("echo", "".into()).await.unwrap();
    assert_eq!(&answer.payload[..], b"heard");

    let mute = jetstream::new(nats.connect("mute").await.unwrap());
    mute.publish("evt.orders.b", "{}".into()).await.unwrap(); // its acknowledgement could not reach the user anyway
    mute.client().flush().await.unwrap();
    let info = jetstream::new(nats.admin().await.unwrap()).get_stream("EVT").await.unwrap();
    assert_eq!(info.cached_info().state.messages, 1);
}

#[tokio::test]
async fn a_directory_of_the_caller_keeps_streams_and_seeds() {
    let home = tempfile::tempdir().unwrap();
    let options = || NatsOptions::new().directory(home.path()).users([NatsUser::new("orders").publish(["evt.>"])]);
    let first = Nats::start(options()).await.unwrap();
    first.apply(declared(STREAM).path()).await.unwrap();
    publish(&first, "evt.orders.a").await;
    let seed = fs::read_to_string(first.creds_file("orders").unwrap()).unwrap();
    drop(first);

    let second = Nats::start(options()).await.unwrap();
    assert_eq!(publish(&second, "evt.orders.b").await, 2);
    assert_eq!(fs::read_to_string(second.creds_file("orders").unwrap()).unwrap(), seed);
}

#[tokio::test]
async fn three_nodes_replicate_and_one_may_die() {
    let cluster = NatsCluster::start(3, NatsOptions::new()).await.unwrap();
    cluster.apply(declared(STREAM).path()).await.unwrap();
    let client = async_nats::connect(cluster.url().split(',').collect::<Vec<_>>()).await.unwrap();
    assert!(client.server_info().connect_urls.is_empty(), "clients would walk round a proxy");
    let jetstream = jetstream::new(client);
    let publish = || async {
        let acknowledged = jetstream.publish("evt.orders.a", "{}".into()).await.map_err(|error| error.to_string())?;
        acknowledged.await.map(|ack| ack.sequence).map_err(|error| error.to_string())
    };
    assert_eq!(publish().await.unwrap(), 1);

    let leader = cluster.stream_leader("EVT").await.unwrap().unwrap();
    cluster.node(leader).kill9().await;
    wait::until("a fact to be stored by the other two", Duration::from_secs(30), publish).await.unwrap();
    wait::until("the others to agree on a new leader", Duration::from_secs(30), || async {
        let now = cluster.stream_leader("EVT").await.map_err(|error| format!("{error:?}"))?;
        if now.is_some_and(|now| now != leader) { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await
    .unwrap();

    cluster.node(leader).restart().await.unwrap();
    cluster.ready().await.unwrap();
    wait::until("the node to catch up", Duration::from_secs(30), || async {
        let state = cluster.node(leader).monitor("/jsz?streams=true").await.map_err(|error| format!("{error:?}"))?;
        let messages = state["account_details"][0]["stream_detail"][0]["state"]["messages"].as_u64();
        if messages >= Some(2) { Ok(()) } else { Err(format!("{messages:?} messages")) }
    })
    .await
    .unwrap();
}
