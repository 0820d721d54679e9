//! The judgements of `doctor`. Pure.

use serde::Deserialize;
use serde_json::Value;

use super::{Check, State};
use crate::outbox::{Outbox, seconds};
use crate::streams::{Action, AssetKind, Plan};

/// The oldest server that has what the mesh uses: atomic batches with deduplication, consumer reset.
const OLDEST_SERVER: (u64, u64) = (2, 14);
/// From this age on, a committed fact that is not published is no passing backlog.
const STALE_SECONDS: f64 = 30.0;

/// The answer of `mesh.ctl.<service>.status`, as far as it is judged.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Status {
    ready: bool,
    #[serde(default)]
    checks: Vec<ServiceCheck>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct ServiceCheck {
    name: String,
    ok: bool,
    detail: Option<String>,
}

/// A consumer at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Load {
    pub(super) pending: u64,
    pub(super) ack_pending: u64,
    pub(super) redelivered: u64,
    /// Pull requests that wait for facts; none means that nobody asks.
    pub(super) waiting: u64,
}

impl Load {
    pub(super) fn of(info: &Value) -> Self {
        let count = |field: &str| info[field].as_u64().unwrap_or_default();
        Self {
            pending: count("num_pending"),
            ack_pending: count("num_ack_pending"),
            redelivered: count("num_redelivered"),
            waiting: count("num_waiting"),
        }
    }
}

pub(super) fn version(version: &str) -> Check {
    let mut numbers = version.split(['.', '-']).map_while(|number| number.parse::<u64>().ok());
    let found = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let detail = format!("nats-server {version}");
    if found >= OLDEST_SERVER {
        return Check::ok("server version", detail);
    }
    let (major, minor) = OLDEST_SERVER;
    Check::failed("server version", detail, format!("upgrade nats-server to {major}.{minor} or newer"))
}

/// Judges `/varz` of the monitoring endpoint.
pub(super) fn sync(varz: &Value) -> Check {
    let always = varz["jetstream"]["config"]["sync_always"] == true;
    if always {
        return Check::ok("disk sync", "every acknowledged fact is on disk");
    }
    Check::bad(
        "disk sync",
        State::Warning,
        "the server acknowledges facts before they are on disk",
        "set `jetstream { sync_interval: always }`: a power failure may lose what was acknowledged since the last sync",
    )
}

/// Judges what is on the server against `nats/`: the stream, then each consumer, then what nobody declared.
pub(super) fn declared(plan: &Plan) -> Vec<Check> {
    let mut checks: Vec<Check> = plan
        .assets
        .iter()
        .map(|asset| {
            let kind = if asset.kind == AssetKind::Stream { "stream" } else { "consumer" };
            let name = format!("{kind} {}", asset.name);
            match asset.action {
                Action::None => Check::ok(name, "as declared"),
                Action::Create => Check::failed(name, "missing", "run `meshctl streams apply`"),
                Action::Update => {
                    let fields: Vec<&str> = asset.changes.iter().map(|change| change.field.as_str()).collect();
                    let detail = format!("differs from nats/ in {}", fields.join(", "));
                    Check::failed(name, detail, "look with `meshctl streams diff`, then `meshctl streams apply`")
                }
            }
        })
        .collect();
    checks.extend(plan.unknown_consumers.iter().map(|name| {
        let remedy = "declare it in nats/consumers/, or delete it if nobody needs its position";
        Check::bad(format!("consumer {name}"), State::Warning, "not declared in nats/", remedy)
    }));
    checks
}

/// Judges a consumer by what was seen of it within a few seconds.
pub(super) fn pulling(service: &str, seen: &[Load], max_ack_pending: Option<u64>) -> Check {
    let name = format!("delivery to {service}");
    let Some(last) = seen.last() else {
        return Check::bad(name, State::Skipped, "its consumer cannot be looked at", "run `meshctl streams apply`");
    };
    let Load { pending, ack_pending, redelivered, .. } = last;
    let detail = format!("{pending} facts wait, {ack_pending} are in hand, {redelivered} were redelivered");
    // A pull request is used up by the facts that it brings, so that a busy service is seen without one at times.
    let asked = seen.iter().any(|load| load.waiting > 0);
    let moving = seen.iter().any(|load| load.pending != last.pending);
    if !asked && !moving {
        let remedy = format!("start {service}, or look in its log why it does not pull");
        return Check::failed(name, format!("nobody asks for facts; {detail}"), remedy);
    }
    if max_ack_pending.is_some_and(|max| seen.iter().all(|load| load.ack_pending >= max)) {
        let remedy = format!(
            "{service} has all it may have in hand and does not settle it: look in its log, and at its database"
        );
        return Check::failed(name, detail, remedy);
    }
    Check::ok(name, detail)
}

/// Judges the replicas of a service that answered.
pub(super) fn replicas(service: &str, answers: &[Status]) -> Check {
    let name = format!("service {service}");
    let faults: Vec<String> = answers
        .iter()
        .flat_map(|answer| answer.checks.iter().filter(|check| !check.ok))
        .map(|check| format!("{}: {}", check.name, check.detail.as_deref().unwrap_or("does not hold")))
        .collect();
    let ready = answers.iter().filter(|answer| answer.ready).count();
    let detail = format!("{ready} of {} replicas are ready", answers.len());
    if answers.is_empty() {
        return Check::failed(name, "nobody answers", format!("start {service}"));
    }
    if ready < answers.len() {
        let faults = if faults.is_empty() { "they are draining".to_owned() } else { faults.join("; ") };
        return Check::failed(name, format!("{detail}; {faults}"), "put right what it names");
    }
    if faults.is_empty() {
        return Check::ok(name, detail);
    }
    Check::bad(name, State::Warning, format!("{detail}; {}", faults.join("; ")), "put right what it names")
}

pub(super) fn outbox(outbox: &Outbox) -> Check {
    let name = format!("outbox of {}", outbox.service);
    let detail = format!("{} facts wait, {} were given up", outbox.pending, outbox.failed);
    let look = format!("look with `meshctl outbox status {}`", outbox.service);
    if outbox.failed > 0 {
        return Check::failed(name, detail, look);
    }
    if outbox.pending > 0 && outbox.oldest_pending_seconds > STALE_SECONDS {
        let detail = format!("{detail}; the oldest for {}", seconds(outbox.oldest_pending_seconds));
        return Check::failed(name, detail, look);
    }
    Check::ok(name, detail)
}
