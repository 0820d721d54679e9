//! Entry point.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use meshctl::cli::Cli;
use meshctl::outcome::exit_code;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    exit_code(runtime.context("cannot start the runtime").and_then(|runtime| runtime.block_on(cli.run())))
}
