//! How a flow is, from its facts and its declaration alone. Pure.

use std::fmt;

use clap::ValueEnum;
use envelope::Timestamp;
use events::flow::Flow;
use serde::Serialize;

use super::progress::Expected;
use super::timeline::TimelineFact;

/// The state of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum FlowState {
    /// Something is owed, and nothing is late
    Running,
    /// The same, on the way back: a failure or a cancellation happened
    Compensating,
    /// A step is overdue
    Late,
    /// Its deadline has passed
    Stuck,
    /// It ended as it was meant
    Completed,
    /// It ended otherwise, and everything is undone
    Cancelled,
    /// Its first fact is not in the stream any more, or begins no declared flow
    Undeclared,
}

impl FlowState {
    /// Whether something is still owed.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Compensating | Self::Late | Self::Stuck)
    }
}

impl fmt::Display for FlowState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Self::Running => "running",
            Self::Compensating => "compensating",
            Self::Late => "late",
            Self::Stuck => "stuck",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Undeclared => "undeclared",
        };
        f.pad(word)
    }
}

/// The state at `now` of a flow with these facts, of which these steps are open and these ends have come.
pub(super) fn of(
    flow: Option<&Flow>,
    facts: &[TimelineFact],
    expected: &[Expected],
    ended_with: &[String],
    now: Timestamp,
) -> FlowState {
    let (Some(flow), Some(first)) = (flow, facts.first()) else { return FlowState::Undeclared };
    if expected.is_empty() && !ended_with.is_empty() {
        let cancelled = ended_with.iter().any(|end| turns_back(flow, end));
        return if cancelled { FlowState::Cancelled } else { FlowState::Completed };
    }
    let age = now.unix_millis() - first.time.unix_millis();
    let deadline = flow.deadline().and_then(|deadline| i64::try_from(deadline.as_millis()).ok());
    if deadline.is_some_and(|deadline| age > deadline) {
        FlowState::Stuck
    } else if expected.iter().any(|step| step.due_in_ms < 0) {
        FlowState::Late
    } else if facts.iter().any(|fact| turns_back(flow, fact.fact())) {
        FlowState::Compensating
    } else {
        FlowState::Running
    }
}

/// Whether a fact leads to the undoing of what was done: something is owed only given it, or nothing but an end that is
/// itself of that kind.
fn turns_back(flow: &Flow, fact: &str) -> bool {
    let given = |fact: &str| flow.steps.iter().any(|step| step.given.as_deref() == Some(fact));
    if given(fact) {
        return true;
    }
    let mut only = flow.steps.iter().filter(|step| step.after == fact && step.given.is_none()).peekable();
    only.peek().is_some() && only.all(|step| step.expect.iter().all(|end| flow.terminal.contains(end) && given(end)))
}
