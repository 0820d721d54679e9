//! `outbox`: what waits to be published, and why; what was given up, back on its way.

mod retry;
mod why;

use std::fmt;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::broker::Broker;
use crate::flows::duration;
use crate::outcome::Outcome;
use crate::output::Format;
use crate::permissions::OPERATOR;
use crate::target::Target;
use crate::{control, dev};

/// What to do with outboxes.
#[derive(Debug, Clone, Subcommand)]
pub enum Verb {
    /// How much waits, for how long, and what holds it up; ends with 1 when a fact was given up
    Status(Status),
    /// Where a fact is, and what holds it up; ends with 1 when no such fact is known
    Why(why::Why),
    /// Put facts that were given up back on their way, before the later facts of their keys
    Retry(retry::Retry),
}

/// Whose.
#[derive(Debug, Clone, Args)]
pub struct Status {
    /// The service; all of them without it
    service: Option<String>,
}

/// The outbox of one service, as it tells it. What this version does not know is passed on in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outbox {
    /// Whose.
    pub service: String,
    /// Facts that wait.
    pub pending: u64,
    /// Age of the oldest of them.
    pub oldest_pending_seconds: f64,
    /// Facts that were given up.
    pub failed: u64,
    /// Who publishes which bucket groups.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// Keys whose next fact failed and is tried again.
    #[serde(default)]
    pub backing_off: Vec<Held>,
    /// Facts that were given up; later facts of their keys wait behind them.
    #[serde(default)]
    pub dead: Vec<Held>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// One bucket group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// How the instance that publishes it calls itself; null when nobody does.
    pub label: Option<String>,
    /// Negative when the lease has run out.
    pub expires_in_seconds: Option<f64>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A fact that holds up its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The key.
    pub key: String,
    /// How often it was tried.
    pub attempts: i64,
    /// The last failure, of a fact that is tried again.
    pub last_error: Option<String>,
    /// The last failure, of a fact that was given up.
    pub error: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// All that were asked for.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Outboxes(Vec<Outbox>);

/// Runs the verb.
///
/// # Errors
/// When a service does not answer.
pub async fn run(verb: Verb, target: &Target, format: Format) -> anyhow::Result<Outcome> {
    let broker = Broker::connect(target, OPERATOR).await?;
    match verb {
        Verb::Status(status) => status.run(&broker, format).await,
        Verb::Why(why) => why.run(&broker, format).await,
        Verb::Retry(retry) => retry.run(&broker, format).await,
    }
}

impl Status {
    async fn run(self, broker: &Broker, format: Format) -> anyhow::Result<Outcome> {
        let services =
            self.service.map_or_else(|| dev::WITH_DATABASE.map(str::to_owned).to_vec(), |service| vec![service]);
        let mut outboxes = Vec::new();
        for service in services {
            let asked = control::ask(broker, &service, "outbox").await;
            outboxes.push(asked.map_err(|error| error.during(format!("cannot ask {service} for its outbox")))?);
        }
        let outboxes = Outboxes(outboxes);
        format.print(&outboxes)?;
        Ok(Outcome::from_answer(outboxes.0.iter().all(|outbox| outbox.failed == 0)))
    }
}

impl Outbox {
    /// Bucket groups that nobody publishes at the moment.
    pub fn abandoned_groups(&self) -> usize {
        let abandoned = |group: &&Group| group.expires_in_seconds.is_none_or(|seconds| seconds < 0.0);
        self.groups.iter().filter(abandoned).count()
    }
}

impl fmt::Display for Outboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|outbox| writeln!(f, "{outbox}"))
    }
}

impl fmt::Display for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} pending", self.service, self.pending)?;
        if self.pending > 0 {
            write!(f, ", the oldest for {}", seconds(self.oldest_pending_seconds))?;
        }
        write!(f, ", {} given up", self.failed)?;
        let abandoned = self.abandoned_groups();
        if abandoned > 0 {
            write!(f, "\n  {abandoned} of {} bucket groups are published by nobody", self.groups.len())?;
        }
        for held in &self.backing_off {
            let error = held.last_error.as_deref().unwrap_or("no error recorded");
            write!(f, "\n  key {} backs off after {} attempts: {error}", held.key, held.attempts)?;
        }
        for held in &self.dead {
            let error = held.error.as_deref().unwrap_or("no error recorded");
            write!(f, "\n  key {} waits behind a fact given up after {} attempts: {error}", held.key, held.attempts)?;
        }
        Ok(())
    }
}

/// Seconds in the unit that a person would choose.
pub(crate) fn seconds(seconds: f64) -> String {
    // Ages are far below 2^53 milliseconds, where a float counts exactly.
    duration((seconds * 1_000.0).round() as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_outbox_in_trouble_names_what_holds_it_up() {
        let outbox: Outbox = serde_json::from_value(json!({
            "service": "payments", "build": "1", "instance": "x", "pending": 3, "oldest_pending_seconds": 61.25,
            "failed": 1, "sent_last_hour": 7,
            "groups": [
                { "bucket_group": 0, "owner": "x", "label": "payments-0", "epoch": 4, "expires_in_seconds": 7.5 },
                { "bucket_group": 1, "owner": null, "label": null, "epoch": 4, "expires_in_seconds": null },
                { "bucket_group": 2, "owner": "y", "label": "payments-1", "epoch": 4, "expires_in_seconds": -2.0 }
            ],
            "backing_off": [
                { "key": "k1", "event_id": "e", "attempts": 4, "last_error": "no stream", "waiting_seconds": 9.0 }
            ],
            "dead": [{
                "key": "k2", "event_id": "e", "event_type": "payments.refund_issued.v1", "attempts": 20,
                "error": "too large", "dead_for_seconds": 90.0
            }]
        }))
        .unwrap();
        let expected = "\
payments: 3 pending, the oldest for 61.2 s, 1 given up
  2 of 3 bucket groups are published by nobody
  key k1 backs off after 4 attempts: no stream
  key k2 waits behind a fact given up after 20 attempts: too large";
        assert_eq!(outbox.to_string(), expected);
        // What is not known here is not lost in JSON.
        assert_eq!(serde_json::to_value(&outbox).unwrap()["sent_last_hour"], 7);
    }
}
