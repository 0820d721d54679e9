//! Names that mean nothing, or something else to somebody else.

use std::collections::BTreeSet;

use events::OutcomeKind;
use events::catalogue::Reaction;

use super::Finding;
use crate::catalogue::Catalogue;
use crate::graph::model::Graph;

pub(super) fn check(catalogue: &Catalogue, graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut services = BTreeSet::new();
    let mut names = BTreeSet::new();
    for entry in &catalogue.services {
        let service = &entry.service;
        if !services.insert(service) {
            findings.push(Finding::error("service-twice", service, "two files describe it"));
        }
        for fact in entry.facts.iter().filter(|fact| fact.event_type.domain != *service) {
            let detail = format!("{service} declares it, and only {} may say it", fact.event_type.domain);
            findings.push(Finding::error("foreign-fact", fact.event_type.fact(), detail));
        }
        for reaction in &entry.reactions {
            let name = format!("{service}/{}", reaction.subscriber);
            if !names.insert(name.clone()) {
                findings.push(Finding::error("subscriber-twice", &name, "the inbox could not tell them apart"));
            }
            findings.extend(majors(graph, &name, reaction));
        }
        let actions = entry.actions.iter().map(|action| (&action.name, &action.emits));
        let reactions = entry.reactions.iter().map(|reaction| (&reaction.subscriber, &reaction.emits));
        for (speaker, fact) in
            actions.chain(reactions).flat_map(|(name, emits)| emits.iter().map(move |fact| (name, fact)))
        {
            findings.extend(emitted(graph, service, speaker, fact));
        }
    }
    if !graph.facts.iter().any(|fact| fact.is(OutcomeKind::Entry)) {
        // Without one, every question about paths would be answered by "there is none".
        findings.push(Finding::error("no-entry", "catalogue", "no fact begins a flow"));
    }
    findings
}

/// A reaction hears one major that exists.
fn majors(graph: &Graph, name: &str, reaction: &Reaction) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(fact) = graph.fact(&reaction.on) else {
        let detail = format!("it hears {}, which nobody declares", reaction.on);
        return vec![Finding::error("unknown-fact", name, detail)];
    };
    for major in reaction.majors.iter().filter(|major| !fact.majors.contains(major)) {
        let detail = format!("it reads version {major} of {}, which nobody publishes", reaction.on);
        findings.push(Finding::error("unpublished-major", name, detail));
    }
    if reaction.majors.is_empty() {
        findings.push(Finding::error("unpublished-major", name, format!("it reads no version of {}", reaction.on)));
    }
    if reaction.majors.len() > 1 {
        let detail = format!("it reads several versions of {}, and would handle one occurrence twice", reaction.on);
        findings.push(Finding::error("two-majors", name, detail));
    }
    findings
}

fn emitted(graph: &Graph, service: &str, speaker: &str, fact: &str) -> Option<Finding> {
    let name = format!("{service}/{speaker}");
    match graph.fact(fact) {
        None => Some(Finding::error("unknown-fact", name, format!("it says {fact}, which nobody declares"))),
        Some(declared) if declared.service != service => {
            let detail = format!("it says {fact}, which is {}'s to say", declared.service);
            Some(Finding::error("foreign-fact", name, detail))
        }
        Some(_) => None,
    }
}
