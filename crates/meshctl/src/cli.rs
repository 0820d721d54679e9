//! The command line as `clap` reads it.

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::outcome::{EXIT_CODES, Outcome};
use crate::output::Format;
use crate::target::Selection;
use crate::{flows, nats, streams};

/// The command line of the mesh
#[derive(Debug, Parser)]
#[command(name = "meshctl", version, about, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    selection: Selection,
    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Verb {
    /// What happened to an order
    #[command(subcommand)]
    Flows(flows::Verb),
    /// The stream and the consumers that nats/ declares
    #[command(subcommand)]
    Streams(streams::Verb),
    /// The users that nats/ declares
    #[command(subcommand)]
    Nats(nats::Verb),
    /// Completions for a shell, on standard output
    Completions {
        /// Which shell
        shell: Shell,
    },
}

impl Cli {
    /// Does what the command line says.
    ///
    /// # Errors
    /// Whatever stops the verb; see [`crate::outcome::exit_code`].
    pub async fn run(self) -> anyhow::Result<Outcome> {
        let format = if self.json { Format::Json } else { Format::Text };
        let selection = self.selection;
        match self.verb {
            Verb::Flows(verb) => flows::run(verb, &selection.resolve()?, format).await,
            Verb::Streams(verb) => streams::run(verb, &selection.resolve()?, format).await,
            Verb::Nats(verb) => nats::run(verb, format),
            Verb::Completions { shell } => {
                clap_complete::generate(shell, &mut Self::command(), "meshctl", &mut std::io::stdout());
                Ok(Outcome::Yes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_coherent() {
        Cli::command().debug_assert();
    }
}
