//! What a service does for an operator over a while: asked for once, followed until it ends.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::broker::{Broker, RequestError};
use crate::output::{Progress, say};
use crate::{clock, control};

/// How often a running operation is asked about.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// The code of what there is not.
const NOT_FOUND: u64 = 404;

/// How an operation is asked for.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The operation")]
pub struct Order {
    /// Do it without asking
    #[arg(long, short)]
    pub yes: bool,
    /// Show what would be done, and do nothing
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// For whom it is recorded
    #[arg(long, value_name = "NAME", env = "USER", hide_env = true, default_value = "operator")]
    pub who: String,
    /// Makes a repetition of the same command one operation [default: a new id]
    #[arg(long, value_name = "UUID")]
    pub operation_id: Option<Uuid>,
}

impl Order {
    /// The request with the token of a preview.
    pub fn request(&self, token: Uuid, reason: &str) -> Value {
        let operation_id = self.operation_id.unwrap_or_else(clock::draw_id);
        json!({ "token": token, "operation_id": operation_id, "reason": reason, "who": self.who })
    }

    /// The operation of this id, when it was asked for before.
    ///
    /// # Errors
    /// When the service does not answer.
    pub async fn earlier(&self, broker: &Broker, service: &str) -> anyhow::Result<Option<Operation>> {
        let Some(operation_id) = self.operation_id else { return Ok(None) };
        match control::ask_for(broker, service, "operation.show", &json!({ "operation_id": operation_id })).await {
            Ok(operation) => Ok(Some(operation)),
            Err(RequestError::Api { code: NOT_FOUND, .. }) => Ok(None),
            Err(error) => Err(error.during(format!("cannot ask {service} for its operations"))),
        }
    }
}

/// An operation and how far it is, as its service tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Whose.
    pub service: String,
    /// Its id.
    pub operation_id: Uuid,
    /// `redrive`, `discard` or `retry`.
    pub action: String,
    /// `running`, `finished` or `stopped`.
    pub state: String,
    /// Why it stopped before its end.
    pub stop_reason: Option<String>,
    /// Why it was asked for.
    pub reason: String,
    /// By whom.
    pub requested_by: String,
    /// When.
    pub requested_at: String,
    /// All members.
    #[serde(default)]
    pub total: u64,
    /// Members by outcome.
    #[serde(default)]
    pub outcomes: BTreeMap<String, u64>,
    /// The first members that did not go through.
    #[serde(default)]
    pub troubles: Vec<Trouble>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A member that did not go through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trouble {
    /// The letter's number.
    pub member: i64,
    /// Its fact.
    pub event_id: Uuid,
    /// Its subscriber.
    pub subscriber: Option<String>,
    /// `failed`, `waits` or `refused`.
    pub outcome: String,
    /// In the words of the service.
    pub detail: Option<String>,
}

impl Operation {
    /// Whether everything was done and nothing stayed behind.
    pub fn is_right(&self) -> bool {
        let stayed = ["failed", "waits", "refused"].iter().any(|outcome| self.outcomes.contains_key(*outcome));
        self.state == "finished" && !stayed
    }

    fn done(&self) -> u64 {
        self.outcomes.values().sum()
    }

    /// Asks until it has ended. It goes on when nobody asks.
    ///
    /// # Errors
    /// When its service does not answer any more.
    pub async fn followed(mut self, broker: &Broker) -> anyhow::Result<Self> {
        let mut bar = Progress::new("done", self.total);
        if self.state == "running" {
            say(format_args!("{} works on operation {}, with or without you", self.service, self.operation_id));
        }
        let question = json!({ "operation_id": self.operation_id });
        while self.state == "running" {
            bar.at(self.done());
            tokio::time::sleep(ASK_EVERY).await;
            let asked = control::ask_for(broker, &self.service, "operation.show", &question).await;
            self = asked.map_err(|error| error.during(format!("cannot follow operation {}", self.operation_id)))?;
        }
        Ok(self)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { service, operation_id, action, state, total, .. } = self;
        write!(f, "{service}: {action} of {total} {state}")?;
        if let Some(reason) = &self.stop_reason {
            write!(f, " ({reason})")?;
        }
        let open = total.saturating_sub(self.done());
        let outcomes = self.outcomes.iter().map(|(outcome, count)| format!("{count} {}", spoken(outcome)));
        let outcomes: Vec<String> = outcomes.chain((open > 0).then(|| format!("{open} not done"))).collect();
        if !outcomes.is_empty() {
            write!(f, ": {}", outcomes.join(", "))?;
        }
        write!(f, "\n  operation {operation_id} of {} at {}: {}", self.requested_by, self.requested_at, self.reason)?;
        for trouble in &self.troubles {
            let subscriber = trouble.subscriber.as_deref().unwrap_or_default();
            let detail = trouble.detail.as_deref().unwrap_or("no detail");
            write!(f, "\n  {service}/{} {subscriber} {}: {detail}", trouble.member, trouble.outcome)?;
        }
        Ok(())
    }
}

/// An outcome in words that read well behind a number.
fn spoken(outcome: &str) -> &str {
    match outcome {
        "settled" => "settled before",
        "waits" => "waiting",
        "returned" => "back in the outbox",
        other => other,
    }
}

/// Several of them.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Operations(pub Vec<Operation>);

impl Operations {
    /// Whether all are [right](Operation::is_right).
    pub fn are_right(&self) -> bool {
        self.0.iter().all(Operation::is_right)
    }
}

impl fmt::Display for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing to do");
        }
        self.0.iter().try_for_each(|operation| writeln!(f, "{operation}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(state: &str, outcomes: &Value, troubles: &Value) -> Operation {
        serde_json::from_value(json!({
            "service": "payments", "build": "1", "instance": "x", "operation_id": Uuid::from_u128(1), "action": "redrive",
            "state": state, "stop_reason": null, "reason": "mended", "requested_by": "kim",
            "requested_at": "2026-01-31T09:30:00Z", "finished_at": null, "rate_per_second": 20, "total": 4,
            "outcomes": outcomes, "troubles": troubles,
        }))
        .unwrap()
    }

    #[test]
    fn an_operation_tells_what_became_of_each_member() {
        let trouble = json!([{
            "member": 17, "event_id": Uuid::from_u128(2), "subscriber": "charge-customer", "outcome": "failed",
            "detail": "no such account"
        }]);
        let told = operation("stopped", &json!({ "redriven": 1, "settled": 1, "failed": 1 }), &trouble);
        let expected = "\
payments: redrive of 4 stopped: 1 failed, 1 redriven, 1 settled before, 1 not done
  operation 00000000-0000-0000-0000-000000000001 of kim at 2026-01-31T09:30:00Z: mended
  payments/17 charge-customer failed: no such account";
        assert_eq!(told.to_string(), expected);
        assert_eq!(serde_json::to_value(&told).unwrap()["rate_per_second"], 20, "what is not known here is passed on");
    }

    #[test]
    fn it_is_right_when_nothing_stayed_behind() {
        assert!(operation("finished", &json!({ "redriven": 3, "settled": 1 }), &json!([])).is_right());
        for (state, outcomes) in [
            ("stopped", json!({ "redriven": 4 })),
            ("finished", json!({ "redriven": 3, "failed": 1 })),
            ("finished", json!({ "redriven": 3, "waits": 1 })),
            ("finished", json!({ "redriven": 3, "refused": 1 })),
        ] {
            assert!(!operation(state, &outcomes, &json!([])).is_right(), "{state} {outcomes}");
        }
    }
}
