//! Where a flow stands against its declaration. Pure.

use envelope::Timestamp;
use events::flow::{Flow, Step};
use serde::Serialize;

use super::timeline::TimelineFact;

/// A step that is open: one of `expect` is owed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Expected {
    /// Any of these settles it, `<domain>.<fact>`.
    pub expect: Vec<String>,
    /// The facts that opened it.
    pub because_of: Vec<String>,
    /// The service that owes it.
    pub owner: String,
    /// Until it is due, in milliseconds; negative when it is late.
    pub due_in_ms: i64,
}

/// The open steps at `now`, most urgent first, and the facts that ended the flow.
pub(super) fn of(flow: &Flow, facts: &[TimelineFact], now: Timestamp) -> (Vec<Expected>, Vec<String>) {
    let mut expected: Vec<Expected> = flow.steps.iter().filter_map(|step| open(step, facts, now)).collect();
    expected.sort_by_key(|step| step.due_in_ms);
    let mut ended_with: Vec<String> = Vec::new();
    for fact in facts.iter().map(TimelineFact::fact).filter(|fact| flow.terminal.iter().any(|end| end == fact)) {
        if !ended_with.iter().any(|known| known == fact) {
            ended_with.push(fact.to_owned());
        }
    }
    (expected, ended_with)
}

fn open(step: &Step, facts: &[TimelineFact], now: Timestamp) -> Option<Expected> {
    let find = |name: &String| facts.iter().find(|fact| fact.fact() == name);
    if step.expect.iter().any(|name| find(name).is_some()) {
        return None;
    }
    let opened_by: Vec<&String> = std::iter::once(&step.after).chain(&step.given).collect();
    let openers: Option<Vec<&TimelineFact>> = opened_by.iter().map(|name| find(name)).collect();
    let since = openers?.iter().map(|fact| fact.time.unix_millis()).max()?;
    let within = i64::try_from(step.within.as_millis()).unwrap_or(i64::MAX);
    Some(Expected {
        expect: step.expect.clone(),
        because_of: opened_by.into_iter().cloned().collect(),
        owner: step.owner.clone(),
        due_in_ms: since.saturating_add(within) - now.unix_millis(),
    })
}
