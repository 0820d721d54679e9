//! Medians with their spread, ratios within one run, and whether each goal holds.

use std::path::Path;

use serde_json::{Value, json};

/// The measurements of one thing, one for each run.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    name: &'static str,
    values: Vec<f64>,
}

/// What a figure is measured against.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    AtLeast(f64),
    Under(f64),
}

/// Collects results and prints them as a table.
pub(crate) struct Report {
    results: Vec<Value>,
    missed: usize,
}

impl Series {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, values: Vec::new() }
    }

    pub(crate) fn push(&mut self, value: f64) {
        self.values.push(value);
    }

    fn spread(&self) -> (f64, f64, f64) {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        match (sorted.get(sorted.len() / 2), sorted.first(), sorted.last()) {
            (Some(median), Some(least), Some(most)) => (*median, *least, *most),
            _ => (f64::NAN, f64::NAN, f64::NAN),
        }
    }
}

impl Goal {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(goal) => value >= goal,
            Self::Under(goal) => value < goal,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(goal) => format!("at least {goal}"),
            Self::Under(goal) => format!("under {goal}"),
        }
    }
}

impl Report {
    pub(crate) fn new() -> Self {
        Self { results: Vec::new(), missed: 0 }
    }

    pub(crate) fn section(&mut self, title: &str) {
        println!("\n{title}");
    }

    /// The ratio of each run, since only figures of one run compare.
    pub(crate) fn ratio(&mut self, name: &str, over: &Series, under: &Series, goal: Goal) {
        let values = over.values.iter().zip(&under.values).map(|(over, under)| over / under).collect();
        self.value(name, &Series { name: "ratio", values }, goal);
    }

    pub(crate) fn value(&mut self, name: &str, series: &Series, goal: Goal) {
        let (median, least, most) = series.spread();
        let holds = goal.holds(median);
        self.missed += usize::from(!holds);
        let verdict = if holds { "holds" } else { "MISSED" };
        println!("  {name:<58} {median:>10.2}  ({least:.2} - {most:.2})  goal {}: {verdict}", goal.text());
        self.results.push(
            json!({ "name": name, "median": median, "min": least, "max": most, "goal": goal.text(), "holds": holds }),
        );
    }

    pub(crate) fn series(&mut self, series: &Series) {
        let (median, least, most) = series.spread();
        println!("  {:<58} {median:>10.0}  ({least:.2} - {most:.2})", series.name);
        self.results
            .push(json!({ "name": series.name, "median": median, "min": least, "max": most, "runs": series.values }));
    }

    /// Writes the JSON.
    pub(crate) fn finish(self, json: Option<&Path>) -> anyhow::Result<()> {
        if let Some(path) = json {
            std::fs::write(path, serde_json::to_string_pretty(&self.results)?)?;
        }
        if self.missed > 0 {
            println!("\n{} goals were missed in this run", self.missed);
        }
        Ok(())
    }
}
