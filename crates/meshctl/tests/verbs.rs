//! Verbs against a server that nobody serves from: exit codes and findings.
#![expect(clippy::unwrap_used, reason = "a step of a test that fails is a failed test")]

use std::path::Path;
use std::process::Stdio;

use meshctl::declaration::Declaration;
use meshctl::dev::servers::nats_users;
use meshctl::permissions::OPERATOR;
use serde_json::{Value, json};
use testkit::{Nats, NatsOptions};
use tokio::process::Command;

/// Where verbs look, and as whom.
struct Caller {
    url: String,
    creds: Option<String>,
}

impl Caller {
    fn of(nats: &Nats) -> Self {
        let creds = nats.creds_file(OPERATOR).unwrap().to_str().unwrap().to_owned();
        Self { url: nats.url(), creds: Some(creds) }
    }

    /// The exit code of a verb, and its output as JSON where it has any.
    async fn run(&self, arguments: &[&str]) -> (i32, Value) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_meshctl"));
        command.args(arguments).arg("--json").stdin(Stdio::null()).env("MESH_NATS_URL", &self.url);
        command.env_remove("MESH_STATE_DIR").env_remove("MESH_NATS_CREDS");
        if let Some(creds) = &self.creds {
            command.env("MESH_NATS_CREDS", creds);
        }
        let output = command.output().await.unwrap();
        (output.status.code().unwrap(), serde_json::from_slice(&output.stdout).unwrap_or_default())
    }

    async fn code(&self, arguments: &[&str]) -> i32 {
        self.run(arguments).await.0
    }
}

async fn closed_server() -> Nats {
    let nats = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nats");
    let users = nats_users(&Declaration::load(&nats).unwrap().users);
    Nats::start(NatsOptions::new().users(users)).await.unwrap()
}

/// The state of a check by name.
fn state<'a>(findings: &'a Value, name: &str) -> &'a str {
    let checks = findings["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).map_or("absent", |check| check["state"].as_str().unwrap())
}

#[tokio::test]
async fn plan_apply_and_diff_end_with_what_they_found() {
    let nats = closed_server().await;
    let caller = Caller::of(&nats);
    assert_eq!(caller.code(&["streams", "plan"]).await, 0);
    assert_eq!(caller.code(&["streams", "diff"]).await, 1);
    assert_eq!(caller.code(&["flows", "show", "0198c2f0-0000-7000-8000-000000000001"]).await, 1, "there is no stream");
    let (code, applied) = caller.run(&["streams", "apply"]).await;
    assert_eq!((code, &applied["applied"]), (0, &json!(true)));
    assert_eq!(caller.code(&["streams", "diff"]).await, 0);
    assert_eq!(caller.code(&["flows", "show", "0198c2f0-0000-7000-8000-000000000001"]).await, 1, "there is no fact");
}

#[tokio::test]
async fn doctor_tells_an_empty_server_from_a_deserted_one() {
    let nats = closed_server().await;
    let caller = Caller::of(&nats);
    let (code, empty) = caller.run(&["doctor"]).await;
    assert_eq!(code, 1);
    for (check, expected) in [
        ("broker", "ok"),
        ("server version", "ok"),
        ("disk sync", "skipped"),
        ("permissions", "ok"),
        ("stream EVT", "failed"),
        ("consumer payments", "failed"),
        ("service payments", "failed"),
    ] {
        assert_eq!(state(&empty, check), expected, "{check}");
    }
    assert_eq!(caller.code(&["streams", "apply"]).await, 0);
    let (code, deserted) = caller.run(&["doctor", "--monitor-url", &nats.monitor_url()]).await;
    assert_eq!((code, &deserted["healthy"]), (1, &json!(false)));
    for (check, expected) in [
        ("disk sync", "ok"),
        ("stream EVT", "ok"),
        ("consumer payments", "ok"),
        ("delivery to payments", "failed"),
        ("service payments", "failed"),
    ] {
        assert_eq!(state(&deserted, check), expected, "{check}");
    }
}

#[tokio::test]
async fn doctor_finds_a_server_that_lets_everybody_do_everything() {
    let nats = Nats::start(NatsOptions::new().default_sync()).await.unwrap();
    let caller = Caller { url: nats.url(), creds: None };
    assert_eq!(caller.code(&["streams", "apply"]).await, 0);
    let (code, findings) = caller.run(&["doctor", "--monitor-url", &nats.monitor_url()]).await;
    assert_eq!(code, 1);
    assert_eq!(state(&findings, "permissions"), "failed");
    assert_eq!(state(&findings, "disk sync"), "warning");
    // The probe itself left nothing behind.
    let stream = nats.monitor("/jsz?streams=true").await.unwrap();
    assert_eq!(stream["messages"], 0);
}

#[tokio::test]
async fn what_cannot_be_reached_ends_with_3_and_what_cannot_be_used_with_2() {
    let nats = closed_server().await;
    let stranger = Caller { url: nats.url(), creds: None };
    assert_eq!(stranger.code(&["streams", "diff"]).await, 3);
    let nobody = Caller { url: "nats://127.0.0.1:1".to_owned(), creds: None };
    assert_eq!(nobody.code(&["outbox", "status"]).await, 3);
    assert_eq!(nobody.code(&["doctor"]).await, 1, "a mesh that does not answer is a finding");
    let shapeless = Caller { url: nats.url(), creds: Some("/dev/null".to_owned()) };
    assert_eq!(shapeless.code(&["streams", "diff"]).await, 2);
    let caller = Caller::of(&nats);
    assert_eq!(caller.code(&["outbox", "status", "orders"]).await, 3, "no service runs");
    assert_eq!(caller.code(&["streams", "diff", "--dir", "/nonexistent"]).await, 2);
    assert_eq!(caller.code(&["order"]).await, 2, "the address of orders is not known");
    assert_eq!(caller.code(&["nonsense"]).await, 2);
}

#[tokio::test]
async fn the_committed_users_are_what_the_catalogue_asks_for() {
    let caller = Caller { url: "nats://127.0.0.1:1".to_owned(), creds: None };
    assert_eq!(caller.code(&["nats", "permissions", "--check"]).await, 0);
    let (_, users) = caller.run(&["nats", "permissions"]).await;
    let committed = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nats/users.json"));
    assert_eq!(users, serde_json::from_str::<Value>(&committed.unwrap()).unwrap());
}

#[tokio::test]
async fn the_contracts_and_their_graph_are_sound_and_need_no_mesh() {
    let caller = Caller { url: "nats://127.0.0.1:1".to_owned(), creds: None };
    let (code, graph) = caller.run(&["graph", "--check"]).await;
    assert_eq!((code, &graph["ok"]), (0, &json!(true)));
    assert_eq!(graph["cycles"][0]["ended_by"][0]["at_most_per_key"], 1);
    let (code, drawn) = caller.run(&["graph"]).await;
    assert_eq!((code, drawn["facts"].as_array().unwrap().len()), (0, events::all().len()));
    assert_eq!(caller.code(&["graph", "--format", "mermaid"]).await, 0);
    let (code, gate) = caller.run(&["contracts", "check"]).await;
    assert_eq!((code, &gate["ok"]), (0, &json!(true)), "{gate}");
    assert_eq!(caller.code(&["contracts", "docs"]).await, 0);
    let (code, schema) = caller.run(&["contracts", "schemas", "payments.refund_issued"]).await;
    assert_eq!((code, &schema["title"]), (0, &json!("RefundIssued")));
    assert_eq!(caller.code(&["contracts", "schemas", "payments.nothing"]).await, 1);
    assert_eq!(caller.code(&["graph", "--catalogue", "/nonexistent"]).await, 2);
    assert_eq!(caller.code(&["contracts", "check", "--dir", "/nonexistent"]).await, 2);
    // Alone, the service hears facts that nobody declares.
    let alone = tempfile::tempdir().unwrap();
    std::fs::write(alone.path().join("orders.json"), include_str!("../../../events/catalogue/orders.json")).unwrap();
    let (code, found) = caller.run(&["graph", "--check", "--catalogue", alone.path().to_str().unwrap()]).await;
    let rules: Vec<&str> =
        found["findings"].as_array().unwrap().iter().map(|finding| finding["rule"].as_str().unwrap()).collect();
    assert_eq!((code, rules.contains(&"unknown-fact")), (1, true), "{rules:?}");
}
