//! Documents that are generated from definitions in the code: the test compares, and writes when `BLESS` is set
//! (`cargo xtask schemas`).

#![expect(clippy::expect_used, clippy::panic, reason = "a test says what is missing by failing")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use clap::{Args, Command, CommandFactory};
use mesh::telemetry::metrics::{Kind, Metric};

/// Read by builds with fail-points only, which the document tells of in its own words.
const FAILPOINTS: &str = "MESH_FAILPOINT";

#[test]
fn the_variables_of_a_service_are_those_of_its_command_line() {
    let service = mesh::config::Arguments::augment_args(Command::new("service"));
    assert_block("docs/configuration.md", "service", &variables(&service));
}

#[test]
fn the_variables_of_meshctl_are_those_of_its_command_line() {
    assert_block("docs/configuration.md", "meshctl", &variables(&meshctl::cli::Cli::command()));
}

#[test]
fn the_metrics_are_those_of_the_enum() {
    let mut table = "| metric | kind | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for metric in Metric::ALL {
        let metric = metric.definition();
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        table.push_str(&format!("| `{}` | {kind} | {} | {} |\n", metric.name, labels.join(", "), cell(metric.help)));
    }
    assert_block("docs/metrics.md", "metrics", &table);
}

#[test]
fn the_exit_codes_are_those_that_help_tells() {
    assert_block("docs/exit-codes.md", "meshctl", &format!("```text\n{}\n```\n", meshctl::outcome::EXIT_CODES));
    let document = read(&root().join("docs/exit-codes.md"));
    let source = read(&root().join("crates/mesh/src/cli.rs"));
    let told = source.lines().find(|line| line.starts_with("Exit codes: ")).expect("what --help of a service says");
    assert!(document.contains(told), "docs/exit-codes.md does not quote {told:?}");
}

/// A row for each flag of a command and its verbs that is also a variable.
fn variables(command: &Command) -> String {
    let mut rows = Vec::new();
    collect_variables(command, &mut rows);
    format!("| variable | flag | meaning |\n|---|---|---|\n{}", rows.concat())
}

fn collect_variables(command: &Command, rows: &mut Vec<String>) {
    for argument in command.get_arguments() {
        let Some(variable) = argument.get_env().map(|name| name.to_string_lossy()) else { continue };
        if variable == FAILPOINTS {
            continue;
        }
        let flag = argument.get_long().expect("a variable is also a flag");
        let value = argument.get_value_names().unwrap_or_default().join(" ");
        let help = argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string);
        let meaning = cell(&help.expect("a flag says what it means"));
        let row = format!("| `{variable}` | `--{flag} {value}` | {meaning} |\n");
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    command.get_subcommands().for_each(|verb| collect_variables(verb, rows));
}

fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Compares the part of a document between `<!-- generated: name -->` and `<!-- end -->` with what it should be.
fn assert_block(document: &str, name: &str, generated: &str) {
    // Two blocks may stand in one document.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let path = root().join(document);
    let text = read(&path);
    let begin = format!("<!-- generated: {name} -->\n");
    let start = text.find(&begin).map(|at| at + begin.len()).unwrap_or_else(|| panic!("{document} lacks {begin}"));
    let end = start + text[start..].find("<!-- end -->").unwrap_or_else(|| panic!("{document} lacks an end"));
    if text[start..end] == *generated {
        return;
    }
    assert!(
        std::env::var_os("BLESS").is_some(),
        "{document} is not as generated: run `cargo xtask schemas`\n{generated}"
    );
    fs::write(&path, format!("{}{generated}{}", &text[..start], &text[end..])).expect("a document that can be written");
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
