//! The graph of a catalogue: facts, who speaks them, who hears them. Pure.

use std::collections::BTreeMap;

use events::OutcomeKind;
use events::flow::Flow;
use serde::Serialize;

use super::paths::{Edges, components};
use crate::catalogue::Catalogue;

/// Nodes and edges, and the cycles among them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Graph {
    /// Every declared fact, service by service.
    pub facts: Vec<FactNode>,
    /// Everything that speaks or hears: subscribers, requests and timers.
    pub speakers: Vec<Speaker>,
    /// Facts that lead to each other.
    pub cycles: Vec<Cycle>,
    /// What is expected after what.
    pub flows: Vec<Flow>,
}

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactNode {
    /// `<domain>.<fact>`.
    pub fact: String,
    /// The service that says it.
    pub service: String,
    /// The majors that are published.
    pub majors: Vec<u16>,
    /// The parts that it plays.
    pub outcome: Vec<OutcomeKind>,
    /// For an effect: the fact that undoes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<String>,
}

/// A subscriber, or a request or timer that speaks on its own account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Speaker {
    /// Where it runs.
    pub service: String,
    /// Its durable name.
    pub name: String,
    /// The fact that it hears; nothing for a request or a timer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// What it may say.
    pub emits: Vec<String>,
    /// How often it speaks for one key at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most_per_key: Option<u32>,
}

/// Facts of which each leads to each other one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cycle {
    /// The facts, sorted.
    pub facts: Vec<String>,
    /// What ends it; empty when nothing does.
    pub ended_by: Vec<Bound>,
    /// Whether it ends: no cycle is left without the reactions that bound themselves.
    pub ends: bool,
}

/// A reaction of a cycle that speaks a limited number of times for one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// Where it runs.
    pub service: String,
    /// Which subscriber.
    pub subscriber: String,
    /// The facts of the cycle that it says so often and not again.
    pub facts: Vec<String>,
    /// How often.
    pub at_most_per_key: u32,
}

impl Graph {
    /// The graph of a catalogue.
    pub fn new(catalogue: &Catalogue) -> Self {
        let speakers = speakers(catalogue);
        Self { facts: facts(catalogue), cycles: cycles(&speakers), speakers, flows: catalogue.flows.clone() }
    }

    /// The fact of this name, `<domain>.<fact>`.
    pub fn fact(&self, name: &str) -> Option<&FactNode> {
        self.facts.iter().find(|fact| fact.fact == name)
    }

    /// Whatever says this fact.
    pub fn saying<'a>(&'a self, fact: &'a str) -> impl Iterator<Item = &'a Speaker> {
        self.speakers.iter().filter(move |speaker| speaker.emits.iter().any(|said| said == fact))
    }

    /// The subscribers that hear this fact.
    pub fn hearing<'a>(&'a self, fact: &'a str) -> impl Iterator<Item = &'a Speaker> {
        self.speakers.iter().filter(move |speaker| speaker.on.as_deref() == Some(fact))
    }

    /// What leads from fact to fact.
    pub(super) fn edges(&self) -> Edges<'_> {
        edges(&self.speakers, |_| true)
    }
}

impl FactNode {
    /// Whether it plays this part.
    pub fn is(&self, part: OutcomeKind) -> bool {
        self.outcome.contains(&part)
    }
}

fn facts(catalogue: &Catalogue) -> Vec<FactNode> {
    let mut nodes: Vec<FactNode> = Vec::new();
    for entry in &catalogue.services {
        for declared in &entry.facts {
            let name = declared.event_type.fact();
            if let Some(known) = nodes.iter_mut().find(|node| node.fact == name && node.service == entry.service) {
                known.majors.push(declared.event_type.major);
                continue;
            }
            nodes.push(FactNode {
                fact: name,
                service: entry.service.clone(),
                majors: vec![declared.event_type.major],
                outcome: declared.outcome.clone(),
                undone_by: declared.undone_by.clone(),
            });
        }
    }
    nodes
}

fn speakers(catalogue: &Catalogue) -> Vec<Speaker> {
    let of = |entry: &events::catalogue::ServiceEntry| -> Vec<Speaker> {
        let actions = entry.actions.iter().map(|action| Speaker {
            service: entry.service.clone(),
            name: action.name.clone(),
            on: None,
            emits: action.emits.clone(),
            at_most_per_key: None,
        });
        let reactions = entry.reactions.iter().map(|reaction| Speaker {
            service: entry.service.clone(),
            name: reaction.subscriber.clone(),
            on: Some(reaction.on.clone()),
            emits: reaction.emits.clone(),
            at_most_per_key: reaction.at_most_per_key,
        });
        actions.chain(reactions).collect()
    };
    catalogue.services.iter().flat_map(of).collect()
}

fn edges(speakers: &[Speaker], keep: impl Fn(&Speaker) -> bool) -> Edges<'_> {
    let mut edges: Edges<'_> = BTreeMap::new();
    for speaker in speakers.iter().filter(|speaker| keep(speaker)) {
        if let Some(on) = &speaker.on {
            edges.entry(on).or_default().extend(speaker.emits.iter().map(String::as_str));
        }
    }
    edges
}

fn cycles(speakers: &[Speaker]) -> Vec<Cycle> {
    let unbounded = components(&edges(speakers, |speaker| speaker.at_most_per_key.is_none()));
    let cycle = |facts: Vec<&str>| Cycle {
        ended_by: speakers.iter().filter_map(|speaker| bound(speaker, &facts)).collect(),
        ends: !unbounded.iter().any(|rest| rest.iter().any(|fact| facts.contains(fact))),
        facts: facts.into_iter().map(str::to_owned).collect(),
    };
    components(&edges(speakers, |_| true)).into_iter().map(cycle).collect()
}

fn bound(speaker: &Speaker, cycle: &[&str]) -> Option<Bound> {
    let within = |fact: &str| cycle.contains(&fact);
    let facts: Vec<String> = speaker.emits.iter().filter(|fact| within(fact)).cloned().collect();
    let at_most_per_key = speaker.at_most_per_key?;
    (within(speaker.on.as_deref()?) && !facts.is_empty()).then(|| Bound {
        service: speaker.service.clone(),
        subscriber: speaker.name.clone(),
        facts,
        at_most_per_key,
    })
}
