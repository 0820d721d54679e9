//! `reconcile`: what was published against what the stream holds, on demand.

use std::fmt;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::broker::Broker;
use crate::outbox::seconds;
use crate::outcome::{Failure, Outcome};
use crate::output::{Format, say};
use crate::permissions::OPERATOR;
use crate::target::Target;
use crate::{control, dev};

/// The pause between two looks at a comparison that is under way.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long a comparison may stand still: the replica that does it may have died, and its lease has to run out.
const STANDSTILL_MAX: Duration = Duration::from_secs(60);

/// Whose.
#[derive(Debug, Clone, Args)]
pub struct Reconcile {
    /// The service; all of them without it
    #[arg(long)]
    service: Option<String>,
    /// Only tell of the last comparison
    #[arg(long)]
    last: bool,
}

/// How the last comparison of a service went, as it tells it. What this version does not know is passed on in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Whose.
    pub service: String,
    /// `never`, `waiting` for one that was asked for, `running` or `done`.
    pub state: String,
    /// Why it was made.
    pub cause: Option<String>,
    /// Facts that were looked at.
    pub checked: u64,
    /// Of them, those that the stream did not hold any more.
    pub lost: u64,
    /// Of them, those that were published again.
    pub republished: u64,
    /// Why it could not be finished.
    pub error: Option<String>,
    /// How long ago everything that was acknowledged was accounted for.
    pub verified_seconds_ago: Option<f64>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// All that were asked for.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Comparisons(Vec<Comparison>);

impl Reconcile {
    /// Runs the verb.
    ///
    /// # Errors
    /// When a service does not answer, or its comparison stands still.
    pub async fn run(self, target: &Target, format: Format) -> anyhow::Result<Outcome> {
        let broker = Broker::connect(target, OPERATOR).await?;
        let services = self.service.map_or_else(|| dev::SERVICES.map(str::to_owned).to_vec(), |service| vec![service]);
        let mut comparisons = Vec::new();
        for service in &services {
            // All of them at work first, then one after another.
            comparisons.push(ask(&broker, service, !self.last).await?);
        }
        if !self.last {
            for comparison in &mut comparisons {
                *comparison = follow(&broker, comparison.clone()).await?;
            }
        }
        let comparisons = Comparisons(comparisons);
        format.print(&comparisons)?;
        Ok(Outcome::from_answer(comparisons.0.iter().all(Comparison::is_clean)))
    }
}

async fn ask(broker: &Broker, service: &str, run: bool) -> anyhow::Result<Comparison> {
    let body = json!({ "run": run }).to_string().into_bytes();
    let asked = control::ask_with(broker, service, "reconcile", body).await;
    asked.map_err(|error| error.during(format!("cannot ask {service} to compare its outbox with the stream")))
}

/// Waits for the end of a comparison that was asked for.
async fn follow(broker: &Broker, mut comparison: Comparison) -> anyhow::Result<Comparison> {
    let mut moved = Instant::now();
    while comparison.is_under_way() {
        if moved.elapsed() > STANDSTILL_MAX {
            let text = format!("the comparison of {} does not go on: {comparison}", comparison.service);
            return Err(Failure::unreachable(text));
        }
        sleep(LOOK_EVERY).await;
        let now = ask(broker, &comparison.service, false).await?;
        if (now.checked, &now.state) != (comparison.checked, &comparison.state) {
            say(&now);
            moved = Instant::now();
        }
        comparison = now;
    }
    Ok(comparison)
}

impl Comparison {
    fn is_under_way(&self) -> bool {
        ["waiting", "running"].contains(&self.state.as_str())
    }

    /// Whether it came to its end and found nothing.
    fn is_clean(&self) -> bool {
        self.lost == 0 && self.error.is_none() && !self.is_under_way()
    }
}

impl fmt::Display for Comparisons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|comparison| writeln!(f, "{comparison}"))
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { service, checked, lost, republished, .. } = self;
        match self.state.as_str() {
            "never" => return write!(f, "{service}: never compared"),
            "waiting" => return write!(f, "{service}: waiting for a replica to compare"),
            "running" => write!(f, "{service}: comparing, {checked} facts so far, {lost} lost")?,
            _ => write!(f, "{service}: {checked} facts compared, {lost} lost, {republished} published again")?,
        }
        if let Some(error) = &self.error {
            write!(f, "\n  it could not be finished: {error}")?;
        }
        if let Some(ago) = self.verified_seconds_ago {
            write!(f, "\n  everything that was acknowledged was accounted for {} ago", seconds(ago))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(changes: &Value) -> Comparison {
        let mut answer = json!({
            "service": "payments", "build": "1", "instance": "x", "state": "done", "cause": "request", "checked": 200,
            "lost": 0, "republished": 0, "republished_total": 7, "error": null, "verified_seconds_ago": 15.0,
        });
        for (member, value) in changes.as_object().unwrap() {
            answer[member] = value.clone();
        }
        serde_json::from_value(answer).unwrap()
    }

    #[test]
    fn a_clean_comparison_is_the_only_yes() {
        assert!(comparison(&json!({})).is_clean());
        assert!(comparison(&json!({ "state": "never" })).is_clean());
        for changes in [json!({ "lost": 1, "republished": 1 }), json!({ "error": "no" }), json!({ "state": "running" })]
        {
            assert!(!comparison(&changes).is_clean(), "{changes}");
        }
    }

    #[test]
    fn a_loss_and_a_failure_are_told_apart() {
        let lost = comparison(&json!({ "lost": 100, "republished": 100 }));
        let expected = "\
payments: 200 facts compared, 100 lost, 100 published again
  everything that was acknowledged was accounted for 15.0 s ago";
        assert_eq!(lost.to_string(), expected);
        let failed = comparison(&json!({ "error": "no permission", "verified_seconds_ago": null }));
        let expected = "\
payments: 200 facts compared, 0 lost, 0 published again
  it could not be finished: no permission";
        assert_eq!(failed.to_string(), expected);
        // What is not known here is not lost in JSON.
        assert_eq!(serde_json::to_value(&lost).unwrap()["republished_total"], 7);
    }
}
