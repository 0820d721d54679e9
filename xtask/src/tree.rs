//! The files of the repository as text, and the cargo that works on them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

/// The root of the checkout that this program was built in.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// A call of the cargo that runs us, in the root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// The standard output of a command that has to succeed.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let shown = format!("{command:?}");
    let output = command.output().with_context(|| format!("cannot run {shown}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{shown} ended with {}:\n{errors}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("{shown} printed something that is no text"))
}

/// Runs a command with our output as its own.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot run {shown}"))?;
    anyhow::ensure!(status.success(), "{shown} ended with {status}");
    Ok(())
}

/// Text files by their path from the root, with `/` between the parts.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, String>,
}

impl Tree {
    /// What git tracks, and what is new and not ignored.
    pub(crate) fn read() -> anyhow::Result<Self> {
        let root = root();
        let mut git = Command::new("git");
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(&root);
        let list = output(&mut git).context("the list of files comes from git")?;
        // What was removed and not committed yet, and what is no text, is not there for us.
        let files = list
            .split_terminator('\0')
            .filter_map(|path| Some((path.to_owned(), std::fs::read_to_string(root.join(path)).ok()?)))
            .collect();
        Ok(Self { files })
    }

    /// The files whose name ends so.
    pub(crate) fn ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let all = self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        all.filter(move |(path, _)| path.ends_with(ending))
    }

    /// The Rust sources.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.ending(".rs")
    }

    #[cfg(test)]
    pub(crate) fn of<const N: usize>(files: [(&str, &str); N]) -> Self {
        Self { files: files.map(|(path, text)| (path.to_owned(), text.to_owned())).into() }
    }
}

/// Whether a source holds tests and nothing else.
pub(crate) fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.split('/').any(|part| part == "tests")
}
