//! What is wrong with a catalogue, decided from the files alone. Pure.

mod names;
mod undo;

use std::fmt;

use events::OutcomeKind;
use serde::Serialize;

use super::model::Graph;
use super::paths::reachable;
use crate::catalogue::Catalogue;
use crate::flows::fact::spoken;

/// One thing that is wrong, or that is worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which rule found it: a stable word for scripts and waivers.
    pub rule: &'static str,
    /// Whether it makes the check fail.
    pub severity: Severity,
    /// The fact, subscriber or flow that it is about.
    pub subject: String,
    /// What is wrong, in a sentence.
    pub detail: String,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The check fails.
    Error,
    /// It may be meant.
    Warning,
}

impl Finding {
    /// A finding that fails the check.
    pub(crate) fn error(rule: &'static str, subject: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { rule, severity: Severity::Error, subject: subject.into(), detail: detail.into() }
    }

    /// A finding that does not.
    pub(crate) fn warning(rule: &'static str, subject: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(rule, subject, detail) }
    }

    /// Whether it makes the check fail.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity} {}: {}: {}", self.rule, self.subject, self.detail)
    }
}

/// Everything that is wrong, by rule.
pub fn all(catalogue: &Catalogue) -> Vec<Finding> {
    let graph = Graph::new(catalogue);
    let mut findings = names::check(catalogue, &graph);
    findings.extend(endless_cycles(&graph));
    findings.extend(unheard(&graph));
    findings.extend(unsaid(&graph));
    findings.extend(undo::check(&graph));
    findings.extend(flows(&graph));
    findings
}

fn endless_cycles(graph: &Graph) -> Vec<Finding> {
    let endless = graph.cycles.iter().filter(|cycle| !cycle.ends);
    let finding = |cycle: &super::model::Cycle| {
        let detail =
            "these facts lead to each other, and no reaction among them says with at_most_per_key what ends it";
        Finding::error("endless-cycle", cycle.facts.join(", "), detail)
    };
    endless.map(finding).collect()
}

/// Facts that nobody hears. One that ends or undoes something may be said to nobody; a failure may not.
fn unheard(graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for fact in graph.facts.iter().filter(|fact| graph.hearing(&fact.fact).next().is_none()) {
        if fact.is(OutcomeKind::Failure) {
            findings.push(Finding::error("unheard-failure", &fact.fact, "the flow fails, and nobody reacts to it"));
        } else if !fact.is(OutcomeKind::End) && !fact.is(OutcomeKind::Undo) {
            findings.push(Finding::error("unheard-fact", &fact.fact, "nobody hears it"));
        }
    }
    findings
}

/// Facts that nobody says, and reactions that therefore never run.
fn unsaid(graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    let edges = graph.edges();
    let by_themselves = graph.speakers.iter().filter(|speaker| speaker.on.is_none());
    let roots: Vec<&str> = by_themselves.flat_map(|speaker| speaker.emits.iter().map(String::as_str)).collect();
    let said = |fact: &str| roots.contains(&fact) || roots.iter().any(|root| reachable(root, &edges).contains(fact));
    for fact in &graph.facts {
        if graph.saying(&fact.fact).next().is_none() {
            findings.push(Finding::error("unsaid-fact", &fact.fact, "it is declared, and nothing says it"));
        }
    }
    for hearer in &graph.speakers {
        let Some(on) = &hearer.on else { continue };
        if graph.fact(on).is_some() && !said(on) {
            let detail = format!("nothing that begins by itself leads to {}, so it never runs", spoken(on));
            findings.push(Finding::error("unfed-subscriber", format!("{}/{}", hearer.service, hearer.name), detail));
        }
    }
    findings
}

/// The declared flows against what the services can do.
fn flows(graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    let edges = graph.edges();
    for flow in &graph.flows {
        let is_entry = graph.fact(&flow.entry).is_some_and(|fact| fact.is(OutcomeKind::Entry));
        if !is_entry {
            findings.push(Finding::error("flow-entry", &flow.name, format!("{} is no entry fact", flow.entry)));
        }
        let reached = reachable(&flow.entry, &edges);
        for end in flow.terminal.iter().filter(|end| !reached.contains(end.as_str())) {
            findings.push(Finding::error("flow-end", &flow.name, format!("{end} cannot be reached from its entry")));
        }
        for step in &flow.steps {
            let hears = |fact: &String| *fact == step.after || step.given.as_ref() == Some(fact);
            let settles = |emits: &[String]| emits.iter().any(|said| step.expect.contains(said));
            let able = graph.speakers.iter().filter(|speaker| speaker.service == step.owner);
            let mut able = able.filter(|speaker| speaker.on.as_ref().is_none_or(hears));
            if !able.any(|speaker| settles(&speaker.emits)) {
                let detail =
                    format!("{} owes {} after {}, and cannot say it", step.owner, step.expect.join(" or "), step.after);
                findings.push(Finding::error("flow-step", &flow.name, detail));
            }
        }
    }
    findings
}
