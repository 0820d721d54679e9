//! `flows list`: how all flows of a while are.

use std::fmt;

use clap::Args;
use envelope::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use super::fact::spoken;
use super::progress::Expected;
use super::scan::{self, Scanned, Since};
use super::state::FlowState;
use super::text::duration;
use super::timeline::Timeline;
use crate::broker::Broker;
use crate::clock;
use crate::outcome::Outcome;
use crate::output::Format;

/// Flows on one page unless it is said otherwise.
const PAGE: usize = 50;

/// Which flows.
#[derive(Debug, Clone, Args)]
pub struct List {
    /// Flows that began since then: 15m, 2h, 7d, or an instant like 2026-01-31T09:30:00Z
    #[arg(long, value_name = "TIME", default_value = "1h")]
    since: Since,
    /// Only flows in this state; may be repeated
    #[arg(long, value_enum, value_name = "STATE")]
    state: Vec<FlowState>,
    /// Only flows in which something is not as it should be
    #[arg(long)]
    anomalous: bool,
    /// Only flows with this fact: OrderCancelled, or orders.order_cancelled
    #[arg(long = "type", value_name = "FACT")]
    fact: Option<String>,
    /// Only flows in which this service said or owes something
    #[arg(long)]
    service: Option<String>,
    /// Flows on one page, newest first
    #[arg(long, value_name = "N", default_value_t = PAGE)]
    limit: usize,
    /// The page behind the one that ended here, as that page said
    #[arg(long, value_name = "SEQUENCE")]
    before: Option<u64>,
}

/// One page.
#[derive(Debug, Serialize)]
struct Page {
    /// The last place of the stream that was read.
    as_of: u64,
    flows: Vec<Summary>,
    /// For the next page: what to say with --before.
    next: Option<u64>,
    /// Flows that have facts here and began before.
    begun_earlier: usize,
}

/// One flow.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    pub(super) flow_id: Uuid,
    kind: Option<String>,
    pub(super) state: FlowState,
    anomalous: bool,
    pub(super) started_at: Timestamp,
    /// From its first fact to its last.
    duration_ms: i64,
    /// From its first fact until now.
    age_ms: i64,
    facts: usize,
    first_sequence: u64,
    last_fact: Option<String>,
    expected: Vec<Expected>,
    anomalies: Vec<String>,
}

impl List {
    pub(super) async fn run(self, broker: &Broker, format: Format) -> anyhow::Result<Outcome> {
        let now = clock::now();
        let scanned = scan::since(broker, self.since.before(now), now).await?;
        format.print(&self.page(scanned, now))?;
        Ok(Outcome::Yes)
    }

    fn page(&self, scanned: Scanned, now: Timestamp) -> Page {
        let Scanned { flows, as_of, begun_earlier } = scanned;
        let place = |flow: &Timeline| flow.facts.first().map_or(0, |fact| fact.stream_sequence);
        let mut flows: Vec<Timeline> = flows.into_iter().filter(|flow| self.wants(flow)).collect();
        flows.sort_by_key(|flow| std::cmp::Reverse(place(flow)));
        flows.retain(|flow| self.before.is_none_or(|before| place(flow) < before));
        let next = (flows.len() > self.limit).then(|| flows.get(self.limit.saturating_sub(1)).map(place)).flatten();
        flows.truncate(self.limit);
        Page { as_of, flows: flows.iter().map(|flow| Summary::new(flow, now)).collect(), next, begun_earlier }
    }

    fn wants(&self, flow: &Timeline) -> bool {
        let of_service = |service: &String| {
            flow.facts.iter().any(|fact| fact.service == *service)
                || flow.expected.iter().any(|step| step.owner == *service)
        };
        let has = |name: &String| flow.facts.iter().any(|fact| fact.fact() == name || spoken(fact.fact()) == *name);
        (self.state.is_empty() || self.state.contains(&flow.state))
            && (!self.anomalous || !flow.anomalies.is_empty())
            && self.fact.as_ref().is_none_or(has)
            && self.service.as_ref().is_none_or(of_service)
    }
}

impl Summary {
    pub(super) fn new(flow: &Timeline, now: Timestamp) -> Self {
        Self {
            flow_id: flow.flow_id,
            kind: flow.kind.clone(),
            state: flow.state,
            anomalous: !flow.anomalies.is_empty(),
            started_at: flow.started_at,
            duration_ms: flow.duration_ms,
            age_ms: now.unix_millis() - flow.started_at.unix_millis(),
            facts: flow.facts.len(),
            first_sequence: flow.facts.first().map_or(0, |fact| fact.stream_sequence),
            last_fact: flow.facts.last().map(|fact| fact.fact().to_owned()),
            expected: flow.expected.clone(),
            anomalies: flow.anomalies.clone(),
        }
    }

    fn waits_for(&self) -> String {
        let Some(step) = self.expected.first() else { return String::new() };
        let facts: Vec<String> = step.expect.iter().map(|fact| spoken(fact)).collect();
        format!("waits for {} of {}", facts.join(" or "), step.owner)
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.flows.iter().try_for_each(|flow| writeln!(f, "{flow}"))?;
        if self.flows.is_empty() {
            writeln!(f, "no such flow")?;
        }
        if self.begun_earlier > 0 {
            writeln!(f, "{} flows have facts here and began before; --since shows them", self.begun_earlier)?;
        }
        self.next.iter().try_for_each(|next| writeln!(f, "there are more: --before {next}"))
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = if self.state.is_open() { self.age_ms } else { self.duration_ms };
        let last = self.last_fact.as_deref().map(spoken).unwrap_or_default();
        let odd = if self.anomalous { ", anomalous" } else { "" };
        let line = format!(
            "{}  {:<12}  {:>10}  {} facts, last {last}{odd}  {}",
            self.flow_id,
            self.state,
            duration(time),
            self.facts,
            self.waits_for()
        );
        f.write_str(line.trim_end())
    }
}
