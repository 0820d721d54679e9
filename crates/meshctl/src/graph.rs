//! `graph`: who says what because of what, drawn from the catalogue, and what is wrong with it.

pub mod check;
mod draw;
pub mod model;
mod paths;
mod text;

use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

pub use check::{Finding, Severity};
pub use model::Graph;
pub(crate) use text::word;

use crate::catalogue::Catalogue;
use crate::outcome::Outcome;
use crate::output::Format;

/// What to draw, and how.
#[derive(Debug, Clone, Args)]
pub struct Draw {
    /// A folder with one <service>.json for each service, of this or another repository; several are read together
    /// [default: the catalogue that this program was built with]
    #[arg(long, value_name = "DIR")]
    catalogue: Vec<PathBuf>,
    /// How to draw it; --json is the same as json
    #[arg(long, value_enum, default_value_t = Shape::Text)]
    format: Shape,
    /// Draw nothing and say what is wrong; ends with 1 when something is
    #[arg(long)]
    check: bool,
}

/// The form of a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// Service by service, for people
    Text,
    /// A flowchart for Markdown
    Mermaid,
    /// For Graphviz
    Dot,
    /// Nodes, edges, cycles and findings
    Json,
}

/// What is wrong with a graph.
#[derive(Debug, Serialize)]
struct Report<'a> {
    ok: bool,
    services: usize,
    facts: usize,
    cycles: &'a [model::Cycle],
    findings: &'a [Finding],
}

/// A drawing as text: it has no other form.
struct Drawn(String);

impl Draw {
    /// Draws, or checks.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub fn run(self, format: Format) -> anyhow::Result<Outcome> {
        let catalogue = Catalogue::load(&self.catalogue)?;
        let graph = Graph::new(&catalogue);
        let findings = check::all(&catalogue);
        if self.check {
            let report = Report {
                ok: !findings.iter().any(Finding::is_error),
                services: catalogue.services.len(),
                facts: graph.facts.len(),
                cycles: &graph.cycles,
                findings: &findings,
            };
            format.print(&report)?;
            return Ok(Outcome::from_answer(report.ok));
        }
        match self.format {
            Shape::Json => Format::Json.print(&Whole { graph: &graph, findings: &findings })?,
            Shape::Text => format.print(&Whole { graph: &graph, findings: &findings })?,
            Shape::Mermaid => Format::Text.print(&Drawn(draw::mermaid(&graph)))?,
            Shape::Dot => Format::Text.print(&Drawn(draw::dot(&graph)))?,
        }
        Ok(Outcome::Yes)
    }
}

/// The graph with what is wrong with it.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    graph: &'a Graph,
    findings: &'a [Finding],
}

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.graph)?;
        text::findings(f, self.findings)
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::cycles(f, self.cycles)?;
        text::findings(f, self.findings)?;
        let errors = self.findings.iter().filter(|finding| finding.is_error()).count();
        match errors {
            0 => write!(f, "{} services, {} facts: sound", self.services, self.facts),
            errors => write!(f, "{} services, {} facts: {errors} wrong", self.services, self.facts),
        }
    }
}

impl Serialize for Drawn {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
