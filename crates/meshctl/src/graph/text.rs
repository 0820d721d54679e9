//! The graph as people read it.

use std::fmt;

use events::OutcomeKind;

use super::check::Finding;
use super::draw::services;
use super::model::{Cycle, FactNode, Graph, Speaker};
use crate::flows::fact::spoken;

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for service in services(self) {
            writeln!(f, "{service}")?;
            let rows: Vec<[String; 3]> =
                self.speakers.iter().filter(|speaker| speaker.service == service).map(row).collect();
            let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
            let (names, heard) = (width(0), width(1));
            for [name, on, says] in &rows {
                writeln!(f, "{}", format!("  {name:<names$}  {on:<heard$}  {says}").trim_end())?;
            }
            for fact in self.facts.iter().filter(|fact| fact.service == service) {
                writeln!(f, "  {}", about(self, fact))?;
            }
            writeln!(f)?;
        }
        cycles(f, &self.cycles)
    }
}

fn row(speaker: &Speaker) -> [String; 3] {
    let on = speaker.on.as_deref().map_or("by itself".to_owned(), |fact| format!("on {}", spoken(fact)));
    let said: Vec<String> = speaker.emits.iter().map(|fact| spoken(fact)).collect();
    let says = if said.is_empty() { "says nothing".to_owned() } else { format!("says {}", said.join(" or ")) };
    let bound = speaker.at_most_per_key.map(|times| format!(", at most {times} for a key")).unwrap_or_default();
    [speaker.name.clone(), on, says + &bound]
}

/// Its parts, what undoes it, who hears it.
fn about(graph: &Graph, fact: &FactNode) -> String {
    let mut parts: Vec<String> = fact.outcome.iter().map(|part| word(*part).to_owned()).collect();
    parts.extend(fact.undone_by.iter().map(|undo| format!("undone by {}", spoken(undo))));
    let hearers: Vec<String> =
        graph.hearing(&fact.fact).map(|hearer| format!("{}/{}", hearer.service, hearer.name)).collect();
    let heard = if hearers.is_empty() { "nobody".to_owned() } else { hearers.join(", ") };
    format!("{} ({}), heard by {heard}", spoken(&fact.fact), parts.join(", "))
}

/// The part in a word, as in the catalogue.
pub(crate) fn word(part: OutcomeKind) -> &'static str {
    match part {
        OutcomeKind::Entry => "entry",
        OutcomeKind::Note => "note",
        OutcomeKind::Effect => "effect",
        OutcomeKind::Failure => "failure",
        OutcomeKind::Undo => "undo",
        OutcomeKind::End => "end",
    }
}

/// The cycles, each with what ends it.
pub(super) fn cycles(f: &mut fmt::Formatter<'_>, cycles: &[Cycle]) -> fmt::Result {
    for cycle in cycles {
        let facts: Vec<String> = cycle.facts.iter().map(|fact| spoken(fact)).collect();
        let ends: Vec<String> = cycle
            .ended_by
            .iter()
            .map(|bound| {
                let said: Vec<String> = bound.facts.iter().map(|fact| spoken(fact)).collect();
                let times = bound.at_most_per_key;
                format!("{} of {}/{}, said at most {times} for a key", said.join(", "), bound.service, bound.subscriber)
            })
            .collect();
        let ended = if cycle.ends { format!("ended by {}", ends.join("; ")) } else { "nothing ends it".to_owned() };
        writeln!(f, "cycle of {}: {ended}", facts.join(" and "))?;
    }
    Ok(())
}

/// One line for each finding.
pub(super) fn findings(f: &mut fmt::Formatter<'_>, findings: &[Finding]) -> fmt::Result {
    findings.iter().try_for_each(|finding| writeln!(f, "{finding}"))
}
