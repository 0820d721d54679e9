//! `flows stuck`: what does not go on, by cause.

use std::collections::BTreeMap;
use std::fmt;

use clap::Args;
use envelope::Timestamp;
use events::catalogue::ServiceEntry;
use serde::Serialize;
use uuid::Uuid;

use super::cause::{self, Cause, Why};
use super::evidence::{self, Sight};
use super::fact::spoken;
use super::scan::{self, Since};
use super::state::FlowState;
use super::text::duration;
use super::timeline::Timeline;
use crate::broker::Broker;
use crate::clock;
use crate::outcome::Outcome;
use crate::output::Format;

/// Flows that are named of one group.
const NAMED: usize = 100;
/// Of these, people see so many.
const SHOWN: usize = 3;

/// Which flows.
#[derive(Debug, Clone, Args)]
pub struct Stuck {
    /// Flows that began since then: 15m, 2h, 7d, or an instant like 2026-01-31T09:30:00Z
    #[arg(long, value_name = "TIME", default_value = "24h")]
    pub(super) since: Since,
    /// Only what this service owes
    #[arg(long)]
    pub(super) service: Option<String>,
    /// Flows that are in time as well
    #[arg(long)]
    pub(super) open: bool,
}

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    as_of: u64,
    /// Flows that do not go on.
    flows: usize,
    groups: Vec<Group>,
}

/// Flows that do not go on for one cause.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Group {
    pub(super) service: String,
    pub(super) expect: Vec<String>,
    /// The cause of the oldest of them.
    #[serde(flatten)]
    pub(super) cause: Cause,
    pub(super) count: usize,
    pub(super) oldest: Timestamp,
    pub(super) newest: Timestamp,
    /// The oldest hundred.
    pub(super) flow_ids: Vec<Uuid>,
    #[serde(skip)]
    age_ms: i64,
}

impl Stuck {
    pub(super) async fn run(self, broker: &Broker, format: Format) -> anyhow::Result<Outcome> {
        let now = clock::now();
        let services = events::catalogue::services()?;
        let scanned = scan::since(broker, self.since.before(now), now).await?;
        let open: Vec<Timeline> = scanned.flows.into_iter().filter(|flow| flow.state.is_open()).collect();
        let sights = evidence::gather(broker, &open, &services).await?;
        let report = self.report(open, &services, &sights, scanned.as_of, now);
        format.print(&report)?;
        Ok(Outcome::from_answer(report.groups.is_empty()))
    }

    pub(super) fn report(
        &self,
        open: Vec<Timeline>,
        services: &[ServiceEntry],
        sights: &BTreeMap<String, Sight>,
        as_of: u64,
        now: Timestamp,
    ) -> Report {
        let mut explained: Vec<(Timeline, Vec<Why>)> = Vec::new();
        for flow in open {
            let mut whys = cause::of(&flow, services, |service| sights.get(service).cloned().unwrap_or_default());
            whys.retain(|why| self.service.as_ref().is_none_or(|service| why.service == *service));
            let overdue = matches!(flow.state, FlowState::Late | FlowState::Stuck);
            // The only way on may be behind a dead letter before anything is late.
            if !whys.is_empty() && (self.open || overdue || whys.iter().any(|why| why.cause.needs_a_person())) {
                explained.push((flow, whys));
            }
        }
        explained.sort_by_key(|(flow, _)| flow.started_at.unix_millis());
        let flows = explained.len();
        Report { as_of, flows, groups: groups(explained, now) }
    }
}

/// Groups by cause, largest first; the flows are in the order of their age.
fn groups(explained: Vec<(Timeline, Vec<Why>)>, now: Timestamp) -> Vec<Group> {
    let mut groups: BTreeMap<(String, String), Group> = BTreeMap::new();
    for (flow, whys) in explained {
        for why in whys {
            let signature = (why.service.clone(), signature(&why));
            let group = groups.entry(signature).or_insert_with(|| Group {
                service: why.service.clone(),
                expect: why.expect.clone(),
                cause: why.cause.clone(),
                count: 0,
                oldest: flow.started_at,
                newest: flow.started_at,
                flow_ids: Vec::new(),
                age_ms: now.unix_millis() - flow.started_at.unix_millis(),
            });
            group.count += 1;
            group.newest = flow.started_at;
            if group.flow_ids.len() < NAMED {
                group.flow_ids.push(flow.flow_id);
            }
        }
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups
}

/// What two flows have in common that are held up by the same: who, and the error without its numbers and ids.
fn signature(why: &Why) -> String {
    let (kind, who, what) = match &why.cause {
        Cause::NotPublished { given_up, error, .. } => ("not_published", given_up.to_string(), error.clone()),
        Cause::NotReached { subscriber, .. } => ("not_reached", subscriber.clone(), None),
        Cause::SubscriberDown => ("subscriber_down", String::new(), None),
        Cause::Retrying { subscriber, error, .. } => ("retrying", subscriber.clone(), Some(error.clone())),
        Cause::ParkedBehind { subscriber, .. } => ("parked_behind", subscriber.clone(), None),
        Cause::DeadLetter { subscriber, reason, error, .. } => {
            ("dead_letter", subscriber.clone(), Some(format!("{reason} {error}")))
        }
        Cause::NothingEmitted { subscriber, reason } => ("nothing_emitted", subscriber.clone(), reason.clone()),
        Cause::NoSubscriber { actions } => ("no_subscriber", actions.join(","), None),
        Cause::Unknown { missing } => ("unknown", String::new(), Some(missing.clone())),
    };
    format!("{kind} {who} {} {}", why.expect.join(","), normal(&what.unwrap_or_default()))
}

/// A text in which every word with a digit is alike: ids, counts, times.
pub(super) fn normal(text: &str) -> String {
    let word = |word: &str| {
        if word.contains(|letter: char| letter.is_ascii_digit()) { "#".to_owned() } else { word.to_owned() }
    };
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.groups.is_empty() {
            return f.write_str("every flow goes on");
        }
        writeln!(f, "{} flows do not go on", self.flows)?;
        self.groups.iter().try_for_each(|group| write!(f, "\n{group}"))
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owed: Vec<String> = self.expect.iter().map(|fact| spoken(fact)).collect();
        writeln!(
            f,
            "{} x {} of {}, the oldest since {}",
            self.count,
            owed.join(" or "),
            self.service,
            duration(self.age_ms)
        )?;
        writeln!(f, "  {}", self.cause)?;
        for flow in self.flow_ids.iter().take(SHOWN) {
            writeln!(f, "  {flow}")?;
        }
        if self.count > SHOWN {
            writeln!(f, "  and {} more", self.count - SHOWN)?;
        }
        Ok(())
    }
}
