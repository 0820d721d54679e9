//! The command line as `clap` reads it.

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::demo::Demo;
use crate::dev::Dev;
use crate::doctor::Doctor;
use crate::graph::Draw;
use crate::load::Load;
use crate::order::PlaceOrder;
use crate::outcome::{EXIT_CODES, Outcome};
use crate::output::Format;
use crate::reconcile::Reconcile;
use crate::target::Selection;
use crate::{contracts, dead, flows, nats, outbox, streams};

/// The command line of the mesh
#[derive(Debug, Parser)]
#[command(name = "meshctl", version, about, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    selection: Selection,
    #[command(subcommand)]
    verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Verb {
    /// A whole mesh on this machine: servers, databases, services, customers and goods
    Dev(Dev),
    /// The same for a moment: four orders that end in four ways; ends with 1 unless all end right
    Demo(Demo),
    /// Place an order
    Order(PlaceOrder),
    /// Orders at a steady rate, and how they end; ends with 1 unless each ends as it was meant
    Load(Load),
    /// What happened to orders, and why they do not go on
    #[command(subcommand)]
    Flows(flows::Verb),
    /// Who says what because of what: drawn, or checked
    Graph(Draw),
    /// The facts as files: checked, described, listed
    #[command(subcommand)]
    Contracts(contracts::Verb),
    /// Facts that are committed and not published yet
    #[command(subcommand)]
    Outbox(outbox::Verb),
    /// Deliveries that were given up
    #[command(subcommand)]
    Dead(dead::Verb),
    /// Compare what was published with what the stream holds, and publish again what it lost; ends with 1 when it had lost
    /// facts, or when a comparison failed
    Reconcile(Reconcile),
    /// The stream and the consumers that nats/ declares
    #[command(subcommand)]
    Streams(streams::Verb),
    /// The users that nats/ declares
    #[command(subcommand)]
    Nats(nats::Verb),
    /// What is wrong, and what to do about it; ends with 1 when a check failed
    Doctor(Doctor),
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
            Verb::Dev(dev) => dev.run(selection.state_dir, format).await,
            Verb::Demo(demo) => demo.run(format).await,
            Verb::Order(order) => order.run(&selection, format).await,
            Verb::Load(load) => load.run(&selection, format).await,
            Verb::Outbox(verb) => outbox::run(verb, &selection.resolve()?, format).await,
            Verb::Dead(verb) => dead::run(verb, &selection.resolve()?, format).await,
            Verb::Reconcile(reconcile) => reconcile.run(&selection.resolve()?, format).await,
            Verb::Flows(verb) => flows::run(verb, &selection.resolve()?, format).await,
            Verb::Graph(draw) => draw.run(format),
            Verb::Contracts(verb) => contracts::run(verb, format),
            Verb::Streams(verb) => streams::run(verb, &selection.resolve()?, format).await,
            Verb::Nats(verb) => nats::run(verb, format),
            Verb::Doctor(doctor) => doctor.run(&selection, format).await,
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
