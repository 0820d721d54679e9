//! The rules of the repository that a compiler does not know. Each is a function from the tree to what breaks it.

mod arrows;
mod budget;
mod documents;
mod manifest;
mod metadata;
mod rust;
mod sql;
mod transactions;
mod variables;
mod words;

use std::fmt;

use crate::tree::Tree;
use budget::Ratchet;
use metadata::Graph;

/// What to check.
#[derive(Debug, clap::Args)]
pub(crate) struct Tidy {
    /// Lower the limits in xtask/ratchet.json to what is there now; none is ever raised or added
    #[arg(long)]
    tighten: bool,
}

/// One place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    /// 0 where the whole file is meant.
    line: usize,
    problem: String,
}

impl Finding {
    fn new(path: &str, line: usize, problem: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, problem: problem.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.problem),
            line => write!(f, "{}:{line}: {}", self.path, self.problem),
        }
    }
}

impl Tidy {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let tree = Tree::read()?;
        if self.tighten {
            Ratchet::read(&tree)?.tightened(&tree).write()?;
        }
        let findings = check(&Tree::read()?, &Graph::read()?)?;
        findings.iter().for_each(|finding| println!("{finding}"));
        anyhow::ensure!(findings.is_empty(), "{} places are not tidy", findings.len());
        println!("tidy: {} files", tree.files.len());
        Ok(())
    }
}

fn check(tree: &Tree, graph: &Graph) -> anyhow::Result<Vec<Finding>> {
    let mut findings = arrows::check(graph);
    findings.extend(manifest::check(tree, graph));
    findings.extend(rust::check(tree));
    findings.extend(budget::check(tree, &Ratchet::read(tree)?));
    findings.extend(words::check(tree));
    findings.extend(sql::check(tree));
    findings.extend(transactions::check(tree));
    findings.extend(documents::check(tree));
    findings.extend(variables::check(tree));
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cargo test` holds the repository to its rules.
    #[test]
    fn the_repository_is_tidy() {
        let findings = check(&Tree::read().unwrap(), &Graph::read().unwrap()).unwrap();
        let list: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert!(list.is_empty(), "\n{}", list.join("\n"));
    }
}
