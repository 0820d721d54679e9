//! What continuous integration checks, quick things first. The tests come last: their summary is the last line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context;

use crate::tree;

mod summary;

use summary::Summary;

/// What one step does.
type Work = fn() -> anyhow::Result<()>;

/// All but the tests.
const STEPS: [(&str, Work); 6] = [
    ("formatting", || tree::run(&mut tree::cargo(&["fmt", "--all", "--check"]))),
    ("lints", || {
        let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"];
        tree::run(&mut tree::cargo(&clippy))
    }),
    ("tidy", || own(&["tidy"])),
    ("query metadata", || own(&["sqlx-prepare", "--check"])),
    ("generated files", || own(&["schemas", "--check"])),
    ("the demo", || tree::run(&mut tree::cargo(&["mesh", "demo"]))),
];

/// Runs every step until one fails. Returns whether the tests passed: their summary has said it all.
pub(crate) fn run() -> anyhow::Result<bool> {
    for (title, work) in STEPS {
        println!("\n== {title}");
        let begun = Instant::now();
        work().with_context(|| format!("failed: {title}"))?;
        println!("== {title}: {} s", begun.elapsed().as_secs());
    }
    println!("\n== the tests");
    tests()
}

/// One of our own verbs, as its own process: what it starts ends with it.
fn own(arguments: &[&str]) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    tree::run(Command::new(program).args(arguments).current_dir(tree::root()))
}

/// `cargo test --workspace`, to its end even when a test fails, with the sum of all its programs as the last line.
fn tests() -> anyhow::Result<bool> {
    let begun = Instant::now();
    let mut cargo = tree::cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]);
    let mut child = cargo.stdout(Stdio::piped()).spawn().context("cannot run cargo test")?;
    let mut summary = Summary::default();
    let mut ours = std::io::stdout().lock();
    for line in BufReader::new(child.stdout.take().context("cargo test has no output")?).split(b'\n') {
        let line = line?;
        ours.write_all(&line)?;
        ours.write_all(b"\n")?;
        summary.read(&String::from_utf8_lossy(&line));
    }
    let passed = child.wait()?.success() && summary.is_complete();
    writeln!(ours, "\n== all of {} test programs", summary.programs)?;
    writeln!(ours, "{}", summary.line(passed, begun.elapsed()))?;
    Ok(passed)
}
