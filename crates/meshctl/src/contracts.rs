//! `contracts`: the facts as files, of this or of another repository.
//!
//! Everything is decided from the files, in the layout of `events/README.md`, so that a team that keeps its contracts
//! elsewhere, in whatever language, has the same gate.

pub mod check;
pub mod compatible;
mod docs;
pub mod folder;
mod list;
mod waiver;

use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::clock;
use crate::graph::Finding;
use crate::outcome::{Failure, Outcome};
use crate::output::Format;
use folder::ContractFolder;

/// What to do with contracts.
#[derive(Debug, Clone, Subcommand)]
pub enum Verb {
    /// Whether they may be released: nothing edited, every change compatible, samples and needs hold; ends with 1 if not
    Check(Folders),
    /// A page about every fact: who says it, who hears it, its members
    Docs(Docs),
    /// The schemas that there are, or one of them
    Schemas(Schemas),
}

/// Where the contracts are.
#[derive(Debug, Clone, Args)]
pub struct Folders {
    /// A folder with schemas/, catalogue/ and needs/; several are looked at together, so that one may hear the facts of
    /// another [default: events, compared with the code of this program as well]
    #[arg(long, value_name = "DIR")]
    dir: Vec<PathBuf>,
}

/// What to describe.
#[derive(Debug, Clone, Args)]
pub struct Docs {
    /// The AsyncAPI document of the contracts that this program was built with, instead of a page
    #[arg(long, conflicts_with = "dir")]
    asyncapi: bool,
    #[command(flatten)]
    folders: Folders,
}

/// What to show.
#[derive(Debug, Clone, Args)]
pub struct Schemas {
    /// Print the newest schema of this fact, <domain>.<fact> or <domain>.<fact>.v<major>
    fact: Option<String>,
    /// Enter new files into schemas/lock.json; what is in it stays as it is
    #[arg(long, conflicts_with = "fact")]
    lock: bool,
    #[command(flatten)]
    folders: Folders,
}

/// What the gate found.
#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    facts: usize,
    services: usize,
    findings: Vec<Finding>,
}

/// Runs the verb.
///
/// # Errors
/// When a folder or a file cannot be read.
pub fn run(verb: Verb, format: Format) -> anyhow::Result<Outcome> {
    match verb {
        Verb::Check(folders) => check(&folders, format),
        Verb::Docs(Docs { asyncapi: true, .. }) => {
            Format::Json.print(&list::Document(events::asyncapi::document()?))?;
            Ok(Outcome::Yes)
        }
        Verb::Docs(Docs { folders, .. }) => {
            format.print(&docs::page(&folders.read()?))?;
            Ok(Outcome::Yes)
        }
        Verb::Schemas(schemas) => list::run(&schemas, format),
    }
}

fn check(folders: &Folders, format: Format) -> anyhow::Result<Outcome> {
    let read = folders.read()?;
    let mut findings = check::all(&read);
    if folders.dir.is_empty() {
        findings.extend(check::code(&read[0])?);
    }
    let findings = waiver::apply(findings, &read, clock::now())?;
    let report = Report {
        ok: !findings.iter().any(Finding::is_error),
        facts: read.iter().map(|folder| folder.facts().len()).sum(),
        services: read.iter().map(|folder| folder.catalogue.services.len()).sum(),
        findings,
    };
    format.print(&report)?;
    Ok(Outcome::from_answer(report.ok))
}

impl Folders {
    fn read(&self) -> anyhow::Result<Vec<ContractFolder>> {
        if !self.dir.is_empty() {
            return self.dir.iter().map(|path| ContractFolder::read(path)).collect();
        }
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events");
        let found = [PathBuf::from("events"), checkout].into_iter().find(|path| path.join("schemas").is_dir());
        let path =
            found.ok_or_else(|| Failure::usage("there is no events/schemas here: name the folder with --dir"))?;
        Ok(vec![ContractFolder::read(&path)?])
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.findings.iter().try_for_each(|finding| writeln!(f, "{finding}"))?;
        let wrong = self.findings.iter().filter(|finding| finding.is_error()).count();
        let verdict = if self.ok { "may be released".to_owned() } else { format!("{wrong} wrong") };
        write!(f, "{} facts of {} services: {verdict}", self.facts, self.services)
    }
}

#[cfg(test)]
mod tests;
