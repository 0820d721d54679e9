//! `doctor`: what is wrong with a mesh, and what to do about it.

mod checks;
mod examine;

use std::fmt;

use clap::Args;
use serde::Serialize;

use crate::outcome::Outcome;
use crate::output::Format;
use crate::streams::{self, Folder};
use crate::target::Selection;

/// What to compare with, and where else to look.
#[derive(Debug, Clone, Args)]
pub struct Doctor {
    #[command(flatten)]
    folder: Folder,
    /// The monitoring endpoint of the NATS server, e.g. http://nats:8222; a run of `dev` names its own
    #[arg(long, env = "MESH_NATS_MONITOR_URL", value_name = "URL")]
    monitor_url: Option<String>,
}

/// The result of all checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Whether no check failed.
    pub healthy: bool,
    /// One after the other.
    pub checks: Vec<Check>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// How it is.
    pub state: State,
    /// What was seen.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok,
    /// Works, and is worth a look.
    Warning,
    /// Does not work, or will not when it matters.
    Failed,
    /// Could not be looked at.
    Skipped,
}

impl Doctor {
    /// Examines a mesh.
    ///
    /// # Errors
    /// When no mesh is named, or `nats/` cannot be read. A mesh that does not answer is a finding.
    pub async fn run(self, selection: &Selection, format: Format) -> anyhow::Result<Outcome> {
        let declaration = streams::load(self.folder.dir.as_deref())?;
        let target = selection.resolve()?;
        let of_run = target.dev.as_ref().map(|dev| dev.nats.monitor_url.clone());
        let checks = examine::all(&target, &declaration, self.monitor_url.or(of_run).as_deref()).await;
        let findings = Findings { healthy: checks.iter().all(|check| check.state != State::Failed), checks };
        format.print(&findings)?;
        Ok(Outcome::from_answer(findings.healthy))
    }
}

impl Check {
    fn ok(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { name: name.into(), state: State::Ok, detail: detail.into(), remedy: None }
    }

    fn bad(name: impl Into<String>, state: State, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name: name.into(), state, detail: detail.into(), remedy: Some(remedy.into()) }
    }

    fn failed(name: impl Into<String>, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::bad(name, State::Failed, detail, remedy)
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.checks.iter().try_for_each(|check| writeln!(f, "{check}"))?;
        let failed = self.checks.iter().filter(|check| check.state == State::Failed).count();
        match failed {
            0 => f.write_str("no check failed"),
            1 => f.write_str("1 check failed"),
            more => write!(f, "{more} checks failed"),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.state {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Failed => "FAILED",
            State::Skipped => "skipped",
        };
        write!(f, "{word:<8} {}: {}", self.name, self.detail)?;
        self.remedy.iter().try_for_each(|remedy| write!(f, "\n         remedy: {remedy}"))
    }
}

#[cfg(test)]
mod tests;
