//! A whole mesh from the command line: started, used, ended, killed.
#![expect(clippy::unwrap_used, reason = "a step of a test that fails is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::time::Duration;

use async_nats::{ConnectOptions, HeaderMap, jetstream};
use envelope::{Event, EventType, Metadata, Subject, Timestamp};
use events::{CancelReason, OrderCancelled};
use meshctl::permissions::{OPERATOR, inbox_prefix};
use meshctl::target::DevRecord;
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::wait;
use uuid::Uuid;

/// How long the end of a process may take to be seen.
const GONE_WITHIN: Duration = Duration::from_secs(20);

/// A state directory and the program that works on it. Ends what runs there when the test fails.
struct Bench {
    /// Closed to other accounts, like the home of a user.
    _parent: tempfile::TempDir,
    state: PathBuf,
}

/// The demonstration builds the services, and shows that it does; the other tests then take them as they are.
static DEMONSTRATION: LazyLock<Output> =
    LazyLock::new(|| Command::new(env!("CARGO_BIN_EXE_meshctl")).args(["demo", "--json"]).output().unwrap());

impl Bench {
    fn new() -> Self {
        LazyLock::force(&DEMONSTRATION);
        let parent = tempfile::Builder::new().prefix("meshctl-dev-").tempdir().unwrap();
        Self { state: parent.path().join("state"), _parent: parent }
    }

    fn path(&self) -> &Path {
        &self.state
    }

    fn meshctl(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_meshctl"));
        command.args(arguments).arg("--state-dir").arg(self.path()).output().unwrap()
    }

    /// Runs a verb that has to end with `code`; what it printed.
    fn expect(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.meshctl(arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "meshctl {}: {told}", arguments.join(" "));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.expect(0, &arguments)).unwrap()
    }

    fn record(&self) -> DevRecord {
        serde_json::from_str(&fs::read_to_string(self.path().join("dev.json")).unwrap()).unwrap()
    }

    /// The command lines of all processes that name the state directory, the services by their environment.
    fn processes(&self) -> Vec<String> {
        let marker = self.path().to_str().unwrap();
        let entries = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let read = |path: &Path, file: &str| {
            String::from_utf8_lossy(&fs::read(path.join(file)).unwrap_or_default()).replace('\0', " ")
        };
        entries
            .filter(|path| read(path, "cmdline").contains(marker) || read(path, "environ").contains(marker))
            .map(|path| read(&path, "cmdline"))
            .collect()
    }

    async fn nothing_runs(&self) {
        wait::until("no process of the run", GONE_WITHIN, || async {
            let left = self.processes();
            if left.is_empty() { Ok(()) } else { Err(left.join("; ")) }
        })
        .await
        .unwrap();
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.meshctl(&["dev", "stop"]);
        // For root, the data of PostgreSQL is where its account may go.
        if let Ok(elsewhere) = fs::read_link(self.path().join("postgres")) {
            let _ = fs::remove_dir_all(elsewhere);
        }
    }
}

fn kill9(pid: u32) {
    signal(pid, Signal::KILL);
}

fn signal(pid: u32, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A service that stands still is named as the cause, by its flow and among all flows.
async fn a_flow_that_stands_still_says_whose_it_is(bench: &Bench) {
    let inventory = bench.record().services["inventory"][0].pid;
    signal(inventory, Signal::STOP);
    let order = bench.json(&["order"]);
    let order_id = order["order_id"].as_str().unwrap();
    let stuck = wait::until("the cause", GONE_WITHIN, || async {
        let told = bench.meshctl(&["flows", "stuck", "--open", "--json"]);
        let told: Value = serde_json::from_slice(&told.stdout).unwrap();
        let down = |group: &&Value| group["service"] == "inventory" && group["cause"] == "subscriber_down";
        let found = told["groups"].as_array().unwrap().iter().find(down).cloned();
        found.ok_or_else(|| told.to_string())
    })
    .await
    .unwrap();
    assert_eq!(stuck["flow_ids"][0], order_id, "{stuck}");
    bench.expect(1, &["flows", "stuck", "--open"]);
    let flow = bench.json(&["flows", "show", order_id]);
    assert_eq!((&flow["state"], &flow["why"][0]["cause"]), (&"running".into(), &"subscriber_down".into()), "{flow}");
    signal(inventory, Signal::CONT);
    wait::until("the end of the flow", GONE_WITHIN, || async {
        let flow = bench.json(&["flows", "show", order_id]);
        if flow["state"] == "completed" && flow["why"] == Value::Array(Vec::new()) {
            Ok(())
        } else {
            Err(flow.to_string())
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_detached_run_serves_orders_survives_a_death_and_leaves_nothing() {
    let bench = Bench::new();
    bench.expect(0, &["dev", "--detach", "--no-build"]);
    let record = bench.record();
    assert_eq!(record.services.keys().collect::<Vec<_>>(), ["inventory", "notifications", "orders", "payments"]);

    let order = bench.json(&["order", "--wait"]);
    assert_eq!(order["status"], "confirmed");
    let order_id = order["order_id"].as_str().unwrap();
    let story = bench.expect(0, &["flows", "show", order_id]);
    assert!(story.contains("finished with OrderConfirmed"), "{story}");
    let flow = bench.json(&["flows", "show", order_id]);
    assert_eq!(flow["facts"].as_array().unwrap().len(), 4, "{flow}");
    bench.expect(1, &["flows", "show", "0198c2f0-0000-7000-8000-000000000001"]);
    bench.expect(1, &["order", "--sku", "poster", "--wait"]);
    bench.expect(0, &["streams", "diff"]);
    bench.expect(0, &["outbox", "status"]);
    bench.expect(0, &["doctor"]);
    bench.expect(2, &["dev"]);

    let told = bench.json(&["flows", "list", "--since", "10m"]);
    let states: Vec<&str> =
        told["flows"].as_array().unwrap().iter().map(|flow| flow["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["cancelled", "completed"], "newest first: {told}");
    let one =
        bench.json(&["flows", "list", "--state", "completed", "--type", "OrderConfirmed", "--service", "inventory"]);
    assert_eq!(one["flows"][0]["flow_id"], order_id);
    let page = bench.json(&["flows", "list", "--limit", "1"]);
    let next = page["next"].to_string();
    assert_eq!(bench.json(&["flows", "list", "--limit", "1", "--before", &next])["flows"][0]["flow_id"], order_id);
    bench.expect(0, &["flows", "stuck"]);
    let load = bench.json(&[
        "load",
        "--count",
        "12",
        "--rate",
        "20",
        "--customers",
        "3",
        "--mix",
        "confirmed=3,declined=1,out_of_stock=1,cancelled=1",
    ]);
    assert_eq!((&load["sent"], &load["unfinished"], &load["refused"]), (&12.into(), &0.into(), &0.into()), "{load}");
    assert!(load["latency"]["p99_ms"].as_i64().unwrap() > 0);
    bench.expect(2, &["load", "--rate", "0"]);

    a_flow_that_stands_still_says_whose_it_is(&bench).await;

    let before = record.services["payments"][0].pid;
    kill9(before);
    wait::until("another process of payments", GONE_WITHIN, || async {
        let now = bench.record().services["payments"][0].pid;
        if now == before { Err("the same") } else { Ok(()) }
    })
    .await
    .unwrap();
    bench.expect(0, &["order", "--wait"]);

    bench.expect(0, &["dev", "stop"]);
    assert_eq!(bench.processes(), [""; 0]);
    assert!(!bench.path().join("dev.json").exists());
    bench.expect(3, &["flows", "show", order_id]);

    // What was kept is there again.
    bench.expect(0, &["dev", "--detach", "--no-build", "--replicas", "2"]);
    assert_eq!(bench.record().services["orders"].len(), 2);
    assert_eq!(bench.json(&["flows", "show", order_id])["facts"], flow["facts"]);
    bench.expect(0, &["dev", "stop"]);
    bench.nothing_runs().await;
}

#[tokio::test]
async fn a_killed_run_leaves_no_process_and_can_be_started_again() {
    let bench = Bench::new();
    bench.expect(0, &["dev", "--detach", "--no-build", "--empty"]);
    assert!(bench.processes().len() >= 5, "{:?}", bench.processes());
    kill9(bench.record().pid);
    bench.nothing_runs().await;
    bench.expect(3, &["outbox", "status"]);
    bench.expect(0, &["dev", "--detach", "--no-build", "--empty"]);
    bench.expect(0, &["dev", "stop"]);
}

#[tokio::test]
async fn four_orders_of_the_demonstration_end_right() {
    let told = String::from_utf8_lossy(&DEMONSTRATION.stderr);
    assert!(DEMONSTRATION.status.success(), "{told}");
    let report: Value = serde_json::from_slice(&DEMONSTRATION.stdout).unwrap();
    let orders = report["orders"].as_array().unwrap();
    let titles: Vec<&str> = orders.iter().map(|order| order["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["confirmed", "declined", "out of stock and refunded", "cancelled in flight"]);
    let cancelled = orders[3]["timeline"]["facts"].as_array().unwrap();
    assert!(cancelled.iter().any(|fact| fact["type"] == "payments.refund_issued.v1"));
}

/// Puts a fact about an order that nobody placed into the stream, as its own service would.
async fn say_cancelled(record: &DevRecord, order_id: Uuid, id: Uuid, body: Value) {
    let fact = OrderCancelled { order_id, reason: CancelReason::Customer };
    let event_type = EventType::of::<OrderCancelled>();
    let subject = Subject::new(&event_type, &fact.key()).unwrap();
    let metadata = Metadata {
        id,
        source: "urn:mesh:orders".to_owned(),
        event_type,
        time: Timestamp::from_offset(time::OffsetDateTime::UNIX_EPOCH),
        key: fact.key(),
        revision: OrderCancelled::REVISION,
        correlation_id: order_id,
        causation_id: None,
        sequence: 1,
        emitter: "orders/test@0".to_owned(),
        hops: 0,
        trace: None,
        occurrence_id: None,
        extensions: Vec::new(),
    };
    let mut headers = HeaderMap::new();
    for (name, value) in metadata.to_headers().unwrap() {
        headers.insert(name.as_str(), value.as_str());
    }
    // The credentials of all users lie beside each other.
    let operator = &record.nats.operator_creds;
    let orders = operator.file_name().unwrap().to_str().unwrap().replace(OPERATOR, "orders");
    let seed = fs::read_to_string(operator.with_file_name(orders)).unwrap();
    let options = ConnectOptions::with_nkey(seed.trim().to_owned()).custom_inbox_prefix(inbox_prefix("orders"));
    let stream = jetstream::new(options.connect(&record.nats.url).await.unwrap());
    let body = body.to_string().into();
    stream.publish_with_headers(subject.as_str().to_owned(), headers, body).await.unwrap().await.unwrap();
}

#[tokio::test]
async fn what_was_given_up_is_seen_redriven_and_discarded_from_the_command_line() {
    let bench = Bench::new();
    bench.expect(0, &["dev", "--detach", "--no-build", "--empty"]);
    assert_eq!(bench.json(&["dead", "list"]), json!({ "letters": [], "more": [] }));
    let order_id = Uuid::from_u128(0x0d);
    let body = |reason: Value| json!({ "order_id": order_id, "reason": reason });
    say_cancelled(&bench.record(), order_id, Uuid::from_u128(1), body(json!(7))).await;
    say_cancelled(&bench.record(), order_id, Uuid::from_u128(2), body(json!("customer"))).await;
    let kept = wait::until("letters", GONE_WITHIN, || async {
        let page = bench.meshctl(&["dead", "list", "--service", "payments", "--json"]);
        let page: Value = serde_json::from_slice(&page.stdout).unwrap_or_default();
        match page["letters"].as_array().map(Vec::as_slice) {
            Some([behind, head]) => Ok([behind.clone(), head.clone()]),
            _ => Err(page),
        }
    });
    let [behind, head] = kept.await.unwrap();
    assert_eq!((&head["reason"], &behind["reason"]), (&json!("bad_body"), &json!("behind")));
    let name = format!("payments/{}", head["id"]);
    assert!(bench.expect(1, &["dead", "list"]).contains(&name));
    let shown = bench.json(&["dead", "show", &name]);
    assert_eq!((&shown["payload_text"], &shown["behind_count"]), (&json!(body(json!(7)).to_string()), &json!(1)));

    // Nobody can be asked here, and nothing says yes.
    bench.expect(2, &["dead", "redrive", &name]);
    bench.expect(2, &["dead", "redrive", "--yes"]);
    let would = bench.json(&["dead", "redrive", &name, "--dry-run"]);
    assert_eq!((&would[0]["eligible"], &would[0]["included"]), (&json!(2), &json!(1)));
    // No build that runs can read it.
    let again = bench.expect(1, &["dead", "redrive", &name, "--yes", "--because", "try", "--who", "kim", "--json"]);
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again[0]["outcomes"], json!({ "failed": 1, "waits": 1 }), "{again}");
    let operation = again[0]["operation_id"].as_str().unwrap();
    assert_eq!(bench.json(&["dead", "operations", "payments"])[0]["requested_by"], "kim");
    bench.expect(1, &["dead", "operation", "payments", operation]);

    bench.expect(2, &["dead", "discard", &name, "--yes"]);
    bench.expect(0, &["dead", "discard", &name, "--yes", "--because", "nobody placed it"]);
    // What waited behind it is handled by itself.
    wait::until("nothing that waits", GONE_WITHIN, || async {
        let listed = bench.meshctl(&["dead", "list", "--service", "payments"]);
        if listed.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&listed.stdout).into_owned()) }
    })
    .await
    .unwrap();
    let discarded = bench.json(&["dead", "list", "--service", "payments", "--state", "discarded"]);
    assert_eq!(discarded["letters"][0]["discard_reason"], "nobody placed it");
    bench.expect(1, &["outbox", "why", "--key", "nobody-knows-it"]);
    bench.expect(2, &["outbox", "why"]);
    bench.expect(0, &["outbox", "retry", "--all", "--yes"]);
    bench.expect(0, &["dev", "stop"]);
}

#[tokio::test]
async fn nothing_runs_where_nothing_was_started() {
    let bench = Bench::new();
    bench.expect(0, &["dev", "stop"]);
    bench.expect(3, &["streams", "plan"]);
    bench.expect(2, &["flows", "show", "not-an-id"]);
}
