//! Effects that stay although their flow failed.

use events::OutcomeKind;

use super::Finding;
use crate::flows::fact::spoken;
use crate::graph::model::{FactNode, Graph};
use crate::graph::paths::{Edges, reachable};

/// For every way from a beginning over an effect to a failure, the undo of the effect has to be reachable from the failure.
pub(super) fn check(graph: &Graph) -> Vec<Finding> {
    let edges = graph.edges();
    let mut findings = Vec::new();
    for effect in graph.facts.iter().filter(|fact| fact.is(OutcomeKind::Effect)) {
        let Some(undo) = effect.undone_by.as_deref() else {
            findings.push(Finding::error(
                "undo-missing",
                &effect.fact,
                "it is an effect and names no fact that undoes it",
            ));
            continue;
        };
        match graph.fact(undo) {
            None => {
                let detail = format!("{undo} is to undo it, and nobody declares that");
                findings.push(Finding::error("undo-missing", &effect.fact, detail));
            }
            Some(fact) if !fact.is(OutcomeKind::Undo) => {
                let detail = format!("{undo} is to undo it, and is not declared as an undo");
                findings.push(Finding::error("undo-missing", &effect.fact, detail));
            }
            Some(_) => findings.extend(unreachable(graph, &edges, effect, undo)),
        }
    }
    findings.extend(dead_ends(graph, &edges));
    findings
}

fn unreachable(graph: &Graph, edges: &Edges<'_>, effect: &FactNode, undo: &str) -> Vec<Finding> {
    let after = reachable(&effect.fact, edges);
    let failures =
        graph.facts.iter().filter(|fact| fact.is(OutcomeKind::Failure) && after.contains(fact.fact.as_str()));
    let stranded = failures.filter(|failure| failure.fact != undo && !reachable(&failure.fact, edges).contains(undo));
    stranded
        .map(|failure| {
            let detail = format!("after {} nothing leads to {}, which undoes it", spoken(&failure.fact), spoken(undo));
            Finding::error("undo-unreachable", &effect.fact, detail)
        })
        .collect()
}

/// Failures and undos after which a flow cannot come to an end, where there are ends at all.
fn dead_ends(graph: &Graph, edges: &Edges<'_>) -> Vec<Finding> {
    let ends: Vec<&str> =
        graph.facts.iter().filter(|fact| fact.is(OutcomeKind::End)).map(|fact| fact.fact.as_str()).collect();
    if ends.is_empty() {
        return Vec::new();
    }
    let failures = graph.facts.iter().filter(|fact| fact.is(OutcomeKind::Failure) && !fact.is(OutcomeKind::End));
    let heard = failures.filter(|fact| graph.hearing(&fact.fact).next().is_some());
    heard
        .filter(|failure| {
            let after = reachable(&failure.fact, edges);
            !ends.iter().any(|end| after.contains(end))
        })
        .map(|failure| Finding::error("no-end", &failure.fact, "no end of a flow can be reached after it"))
        .collect()
}
