//! Benchmarks: each prints a ratio of what was measured in one run on one machine, with the spread, and checks that the
//! run lost and reordered nothing.

mod consume;
mod drain;
mod fact;
mod latency;
mod raw;
mod report;
mod rig;
mod textbook;
mod verify;

use clap::{Parser, Subcommand};

/// Measures relay and consumer against their limits and against the textbook.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
    /// Measured runs of each benchmark, after one that warms up
    #[arg(long, global = true, default_value_t = 5)]
    runs: usize,
    /// Facts in the backlog that is drained or consumed
    #[arg(long, global = true, default_value_t = 200_000)]
    rows: usize,
    /// Write the results as JSON to this file as well
    #[arg(long, global = true)]
    json: Option<std::path::PathBuf>,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum What {
    /// Relay against the textbook poller, goal: at least 100 times
    P3,
    /// Commit to stored in the stream at 200 facts a second
    P4,
    /// Consumer against the textbook consumer, goals: at least 8 and 25 times
    P5,
    /// All of them
    All,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut report = report::Report::new();
    if matches!(arguments.what, What::P3 | What::All) {
        drain::against_textbook(&mut report, arguments.runs, arguments.rows).await?;
    }
    if matches!(arguments.what, What::P4 | What::All) {
        latency::commit_to_stored(&mut report, arguments.runs).await?;
    }
    if matches!(arguments.what, What::P5 | What::All) {
        consume::against_textbook(&mut report, arguments.runs, arguments.rows).await?;
    }
    report.finish(arguments.json.as_deref())
}
