//! The graph for tools that draw. Pure.

use std::fmt::Write;

use events::OutcomeKind;

use super::model::{FactNode, Graph, Speaker};
use crate::flows::fact::spoken;

/// A flowchart: services as boxes, facts as ovals, speakers as rectangles.
pub(super) fn mermaid(graph: &Graph) -> String {
    let mut out = String::from("flowchart LR\n");
    for service in services(graph) {
        let _ = writeln!(out, "  subgraph {}[{service}]", id("service", service));
        for speaker in graph.speakers.iter().filter(|speaker| speaker.service == service) {
            let _ = writeln!(out, "    {}[\"{}\"]", speaker_id(speaker), speaker.name);
        }
        for fact in graph.facts.iter().filter(|fact| fact.service == service) {
            let _ = writeln!(out, "    {}([\"{}\"])", id("fact", &fact.fact), spoken(&fact.fact));
        }
        let _ = writeln!(out, "  end");
    }
    for (from, to, bounded) in arrows(graph) {
        let arrow = if bounded.is_some() { "-.->" } else { "-->" };
        let label = bounded.map(|times| format!("|at most {times} for a key|")).unwrap_or_default();
        let _ = writeln!(out, "  {from} {arrow}{label} {to}");
    }
    for (name, style, part) in CLASSES {
        let facts: Vec<String> =
            graph.facts.iter().filter(|fact| fact.is(part)).map(|fact| id("fact", &fact.fact)).collect();
        if !facts.is_empty() {
            let _ = writeln!(out, "  classDef {name} {style}\n  class {} {name}", facts.join(","));
        }
    }
    out
}

/// How facts of a part look: shape of the line, never colour alone.
const CLASSES: [(&str, &str, OutcomeKind); 3] = [
    ("failure", "stroke:#b3261e,stroke-dasharray:4 2", OutcomeKind::Failure),
    ("undo", "stroke:#8a5a00,stroke-dasharray:1 2", OutcomeKind::Undo),
    ("ending", "stroke-width:3px", OutcomeKind::End),
];

/// A digraph with one cluster for each service.
pub(super) fn dot(graph: &Graph) -> String {
    let mut out = String::from("digraph mesh {\n  rankdir=LR;\n  node [fontname=\"sans-serif\"];\n");
    for service in services(graph) {
        let _ = writeln!(out, "  subgraph \"cluster_{service}\" {{\n    label=\"{service}\";");
        for speaker in graph.speakers.iter().filter(|speaker| speaker.service == service) {
            let _ = writeln!(out, "    {} [shape=box, label=\"{}\"];", speaker_id(speaker), speaker.name);
        }
        for fact in graph.facts.iter().filter(|fact| fact.service == service) {
            let _ =
                writeln!(out, "    {} [label=\"{}\"{}];", id("fact", &fact.fact), spoken(&fact.fact), dot_style(fact));
        }
        let _ = writeln!(out, "  }}");
    }
    for (from, to, bounded) in arrows(graph) {
        let style = bounded.map(|times| format!(" [style=dashed, label=\"at most {times} for a key\"]"));
        let _ = writeln!(out, "  {from} -> {to}{};", style.unwrap_or_default());
    }
    out.push_str("}\n");
    out
}

fn dot_style(fact: &FactNode) -> &'static str {
    if fact.is(OutcomeKind::Failure) {
        ", style=dashed"
    } else if fact.is(OutcomeKind::End) {
        ", peripheries=2"
    } else if fact.is(OutcomeKind::Undo) {
        ", style=dotted"
    } else {
        ""
    }
}

/// From fact to hearer and from speaker to fact, with the bound of the speaker.
fn arrows(graph: &Graph) -> Vec<(String, String, Option<u32>)> {
    let of = |speaker: &Speaker| -> Vec<(String, String, Option<u32>)> {
        let me = speaker_id(speaker);
        let heard = speaker.on.iter().map(|fact| (id("fact", fact), me.clone(), None));
        let said = speaker.emits.iter().map(|fact| (me.clone(), id("fact", fact), speaker.at_most_per_key));
        heard.chain(said).collect()
    };
    graph.speakers.iter().flat_map(of).collect()
}

/// The services in the order of the catalogue.
pub(super) fn services(graph: &Graph) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    let all = graph.facts.iter().map(|fact| &fact.service).chain(graph.speakers.iter().map(|speaker| &speaker.service));
    for service in all {
        if !names.contains(&service.as_str()) {
            names.push(service);
        }
    }
    names
}

fn speaker_id(speaker: &Speaker) -> String {
    id("by", &format!("{}_{}", speaker.service, speaker.name))
}

/// A name that both languages take as it is.
fn id(kind: &str, name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    format!("{kind}_{}", name.chars().map(plain).collect::<String>())
}
