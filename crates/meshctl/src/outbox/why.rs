//! `outbox why`: where a fact is, and what holds it up.

use std::fmt;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::seconds;
use crate::broker::Broker;
use crate::outcome::Outcome;
use crate::output::Format;
use crate::{control, dev};

/// Which fact, or the facts of which key.
#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub struct Why {
    /// The fact
    #[arg(group = "what")]
    event_id: Option<Uuid>,
    /// Everything that waits of this key
    #[arg(long, value_name = "KEY", group = "what")]
    key: Option<String>,
    /// The service that says it; all of them are asked without it
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
}

/// The answer of one service.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Explanation {
    service: String,
    key: Option<String>,
    lease: Option<Lease>,
    facts: Vec<Fact>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Lease {
    bucket_group: i16,
    label: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fact {
    event_id: Uuid,
    event_type: String,
    cause: String,
    held_by: Option<Uuid>,
    attempts: u32,
    last_error: Option<String>,
    waiting_seconds: f64,
    stream_sequence: Option<u64>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The answers of those that know anything of it.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Explanations(Vec<Explanation>);

impl Why {
    pub(super) async fn run(self, broker: &Broker, format: Format) -> anyhow::Result<Outcome> {
        let question = json!({ "event_id": self.event_id, "key": self.key });
        let services =
            self.service.map_or_else(|| dev::WITH_DATABASE.map(str::to_owned).to_vec(), |service| vec![service]);
        let mut known = Vec::new();
        for service in services {
            let asked = control::ask_for::<Explanation>(broker, &service, "outbox.why", &question).await;
            let answer = asked.map_err(|error| error.during(format!("cannot ask {service} about its outbox")))?;
            known.extend((!answer.facts.is_empty()).then_some(answer));
        }
        let known = Explanations(known);
        format.print(&known)?;
        Ok(Outcome::from_answer(!known.0.is_empty()))
    }
}

impl fmt::Display for Explanations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing of it waits: it was never committed, or was sent and is forgotten");
        }
        self.0.iter().try_for_each(|explanation| writeln!(f, "{explanation}"))
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: key {}", self.service, self.key.as_deref().unwrap_or("unknown"))?;
        if let Some(Lease { bucket_group, label, .. }) = &self.lease {
            let owner = label.as_deref().unwrap_or("nobody");
            write!(f, ", bucket group {bucket_group} published by {owner}")?;
        }
        self.facts.iter().try_for_each(|fact| write!(f, "\n  {} {}: {}", fact.event_id, fact.event_type, fact.told()))
    }
}

impl Fact {
    fn told(&self) -> String {
        let waiting = seconds(self.waiting_seconds);
        let error = self.last_error.as_deref().unwrap_or("no error recorded");
        let held_by = self.held_by.map(|event| event.to_string()).unwrap_or_default();
        match self.cause.as_str() {
            "sent" => {
                format!("sent after {waiting}, number {} of the stream", self.stream_sequence.unwrap_or_default())
            }
            "given_up" => format!("given up after {} attempts: {error}", self.attempts),
            "behind_given_up" => format!("waits behind {held_by}, which was given up: `outbox retry` puts it back"),
            "behind" => format!("waits behind {held_by} for {waiting}"),
            "nobody_publishes" => format!("no relay holds the lease of its bucket group, for {waiting}"),
            "backing_off" => format!("tried again after {} attempts: {error}", self.attempts),
            "next" => format!("the next of its key, waiting for {waiting}"),
            other => format!("{other}, waiting for {waiting}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fact_says_what_it_waits_for() {
        let fact = |n: u128, cause: &str, held_by: Option<u128>| {
            json!({
                "event_id": Uuid::from_u128(n), "event_type": "t", "place": "outbox", "cause": cause,
                "held_by": held_by.map(Uuid::from_u128), "attempts": 10, "last_error": "too large",
                "waiting_seconds": 12.0, "stream_sequence": null
            })
        };
        let explanation: Explanation = serde_json::from_value(json!({
            "service": "orders", "key": "k1", "lease": { "bucket_group": 3, "owner": null, "label": null },
            "facts": [fact(1, "given_up", None), fact(2, "behind_given_up", Some(1))]
        }))
        .unwrap();
        let expected = "\
orders: key k1, bucket group 3 published by nobody
  00000000-0000-0000-0000-000000000001 t: given up after 10 attempts: too large
  00000000-0000-0000-0000-000000000002 t: waits behind 00000000-0000-0000-0000-000000000001, which was given up: \
`outbox retry` puts it back";
        assert_eq!(explanation.to_string(), expected);
    }
}
