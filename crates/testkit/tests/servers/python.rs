//! The subscriber of the guide, which takes part with nothing but the documents.

use std::path::{Path, PathBuf};

use async_nats::{HeaderMap, jetstream};
use serde_json::{Value, json};
use testkit::{Nats, NatsOptions};
use tokio::process::Command;

/// Prints the verdict on every message of a folder.
const VERDICTS: &str = r#"
import json, pathlib, subscriber, sys
contracts = subscriber.Contracts(sys.argv[1], ["orders.order_cancelled"])
verdicts = {}
for path in sorted(pathlib.Path(sys.argv[1], "hostile").glob("*.json")):
    case = json.loads(path.read_bytes())
    data = case["body"].encode() if "body" in case else bytes.fromhex(case["body_hex"])
    try:
        contracts.read(case["subject"], case["headers"], data)
        verdicts[path.name] = "accepted"
    except subscriber.Parked as parked:
        verdicts[path.name] = parked.reason
print(json.dumps(verdicts))
"#;

/// Prints what a subscriber holds.
const STATE: &str = r#"
import json, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
rows = lambda sql: [list(row) for row in database.execute(sql)]
print(json.dumps({
    "effects": rows("select fact, body from effect order by rowid"),
    "settled": rows("select count(*) from inbox"),
    "parked": rows("select reason, subject, hex(payload) from dead_letter order by id"),
}))
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(root().join(path)).unwrap()).unwrap()
}

/// An interpreter with the packages of the guide and the guide itself.
async fn python() -> Command {
    let requirements = std::fs::read_to_string(root().join("docs/guides/requirements.txt")).unwrap();
    let packages = testkit::install::python_packages(&requirements).await.unwrap();
    let path = std::env::join_paths([packages, root().join("docs/guides")]).unwrap();
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", path).env("PYTHONDONTWRITEBYTECODE", "1").kill_on_drop(true).current_dir(root());
    command
}

async fn output(command: &mut Command) -> Value {
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// Puts a message of the corpus on the stream, under an id of its own for the server.
async fn publish(nats: &Nats, case: &Value, n: usize) {
    let mut headers = HeaderMap::new();
    for header in case["headers"].as_array().unwrap() {
        headers.append(header[0].as_str().unwrap(), header[1].as_str().unwrap());
    }
    headers.insert("Nats-Msg-Id", n.to_string());
    let (subject, body) = (case["subject"].as_str().unwrap(), case["body"].as_str().unwrap());
    let jetstream = jetstream::new(nats.admin().await.unwrap());
    let ack = jetstream.publish_with_headers(subject.to_owned(), headers, body.to_owned().into()).await.unwrap();
    assert!(!ack.await.unwrap().duplicate);
}

/// A server with the stream of the shop and the durable of an audit.
async fn nats() -> Nats {
    let nats = Nats::start(NatsOptions::new()).await.unwrap();
    let declared = testkit::scratch::dir("declared").unwrap();
    let mut durable = read("nats/consumers/orders.json");
    durable["name"] = json!("audit");
    durable["durable_name"] = json!("audit");
    durable["filter_subjects"] = json!(["evt.orders.order_cancelled.v1.*"]);
    std::fs::create_dir(declared.path().join("consumers")).unwrap();
    std::fs::copy(root().join("nats/stream.json"), declared.path().join("stream.json")).unwrap();
    std::fs::write(declared.path().join("consumers/audit.json"), durable.to_string()).unwrap();
    nats.apply(declared.path()).await.unwrap();
    nats
}

#[tokio::test]
async fn the_reader_of_the_guide_comes_to_the_verdict_of_every_hostile_message() {
    let found = output(python().await.args(["-c", VERDICTS, "events"])).await;
    let found = found.as_object().unwrap();
    assert!(found.len() >= 40, "the corpus is where it should be");
    for (file, verdict) in found {
        assert_eq!(*verdict, read(&format!("events/hostile/{file}"))["verdict"], "{file}");
    }
}

#[tokio::test]
async fn the_subscriber_of_the_guide_settles_facts_once_and_parks_what_it_cannot_read() {
    let nats = nats().await;
    let plain = read("events/hostile/body-plain.json");
    let broken = read("events/hostile/body-truncated.json");
    let samples = ["customer", "deadline", "out-of-stock", "payment-declined"];
    let bodies = samples.map(|name| read(&format!("events/schemas/orders.order_cancelled/v1/samples/{name}.json")));
    for (body, n) in bodies.iter().zip(1..) {
        let mut fact = plain.clone();
        let headers = fact["headers"].as_array_mut().unwrap();
        let id = headers.iter_mut().find(|header| header[0] == "ce-id").unwrap();
        id[1] = json!(format!("01999c3e-5a40-8d77-b0a1-00000000000{n}"));
        fact["body"] = json!(body.to_string());
        publish(&nats, &fact, n).await;
        publish(&nats, &fact, 10 + n).await;
    }
    publish(&nats, &broken, 20).await;

    let state = testkit::scratch::dir("audit").unwrap();
    let file = state.path().join("audit.db");
    let mut subscriber = python().await;
    subscriber.args(["docs/guides/subscriber.py", "--durable", "audit", "--fact", "orders.order_cancelled"]);
    subscriber.args(["--until-idle", "--nats", &nats.url(), "--state"]).arg(&file);
    output(&mut subscriber).await;

    let held = output(python().await.args(["-c", STATE]).arg(&file)).await;
    assert_eq!(held["settled"], json!([[4]]));
    let effects: Vec<Value> = held["effects"].as_array().unwrap().clone();
    let said: Vec<Value> = effects.iter().map(|row| serde_json::from_str(row[1].as_str().unwrap()).unwrap()).collect();
    assert_eq!(said, bodies);
    let bytes: String = broken["body"].as_str().unwrap().bytes().map(|byte| format!("{byte:02X}")).collect();
    assert_eq!(held["parked"], json!([[broken["verdict"], broken["subject"], bytes]]));
    let stream = jetstream::new(nats.admin().await.unwrap()).get_stream_no_info("EVT").await.unwrap();
    let info = stream.consumer_info("audit").await.unwrap();
    assert_eq!((info.num_pending, info.num_ack_pending), (0, 0), "everything is acknowledged");
}
