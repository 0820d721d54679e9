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

const STEPS: [(&str, Work); 8] = [
    ("the tools are there", tools),
    ("formatting", || tree::run(&mut tree::cargo(&["fmt", "--all", "--check"]))),
    ("lints", || {
        let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"];
        tree::run(&mut tree::cargo(&clippy))
    }),
    ("tidy", || own(&["tidy"])),
    ("query metadata", || own(&["sqlx-prepare", "--check"])),
    ("generated files", || own(&["schemas", "--check"])),
    ("the demo", || tree::run(&mut tree::cargo(&["mesh", "demo"]))),
    ("the tests", tests),
];

pub(crate) fn run() -> anyhow::Result<()> {
    for (number, (title, work)) in STEPS.iter().enumerate() {
        println!("\n== {}/{} {title}", number + 1, STEPS.len());
        let begun = Instant::now();
        let outcome = work();
        // The last step ends with the summary of the tests, so its time is in front of that.
        if number + 1 < STEPS.len() {
            println!("== {title}: {} s", begun.elapsed().as_secs());
        }
        outcome.with_context(|| format!("failed: {title}"))?;
    }
    Ok(())
}

/// Toolchains are often installed without the components that the next steps need.
fn tools() -> anyhow::Result<()> {
    for (probe, remedy) in [
        (&["fmt", "--version"][..], "rustup component add rustfmt"),
        (&["clippy", "--version"][..], "rustup component add clippy"),
    ] {
        let version = tree::output(&mut tree::cargo(probe)).with_context(|| format!("run `{remedy}`"))?;
        print!("{version}");
    }
    let pip = tree::output(Command::new("python3").args(["-m", "pip", "--version"]));
    print!("{}", pip.context("the servers of the tests are installed with pip: install Python 3 with pip")?);
    Ok(())
}

/// One of our own verbs, as its own process: what it starts ends with it.
fn own(arguments: &[&str]) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    tree::run(Command::new(program).args(arguments).current_dir(tree::root()))
}

/// `cargo test --workspace`, to its end even when a test fails, with the sum of all its programs as the last line.
fn tests() -> anyhow::Result<()> {
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
    let status = child.wait()?;
    writeln!(ours, "\n== all of {} test programs", summary.programs)?;
    writeln!(ours, "{}", summary.line(status.success(), begun.elapsed()))?;
    anyhow::ensure!(status.success(), "cargo test ended with {status}");
    anyhow::ensure!(summary.ignored == 0, "{} tests were not run", summary.ignored);
    Ok(())
}
