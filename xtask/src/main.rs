//! Housekeeping that needs an `if`: what the repository promises about itself, and what is generated in it.

mod ci;
mod schemas;
mod sqlx_prepare;
mod tidy;
mod tree;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Housekeeping of the repository
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Check arrows, sizes, words, SQL, documents; `cargo test -p xtask` does the same
    Tidy(tidy::Tidy),
    /// Write the query metadata that builds without a database rely on, from the migrations
    SqlxPrepare(sqlx_prepare::SqlxPrepare),
    /// Write what is generated from the contracts and from the runtime's definitions
    Schemas(schemas::Schemas),
    /// Everything that continuous integration checks, in its order
    Ci,
}

fn main() -> ExitCode {
    let succeeded = match Cli::parse().verb {
        Verb::Tidy(tidy) => tidy.run().map(|()| true),
        Verb::SqlxPrepare(prepare) => prepare.run().map(|()| true),
        Verb::Schemas(schemas) => schemas.run().map(|()| true),
        Verb::Ci => ci::run(),
    };
    match succeeded {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
