//! `dead`: deliveries that were given up - look at them, run them again, give them up for good.

mod act;
mod letter;
mod list;
mod preview;
mod record;
mod select;
mod show;

use clap::Subcommand;

use crate::broker::Broker;
use crate::outcome::Outcome;
use crate::output::Format;
use crate::permissions::OPERATOR;
use crate::target::Target;

/// What to do with dead letters.
#[derive(Debug, Clone, Subcommand)]
pub enum Verb {
    /// What was given up and waits; ends with 1 when there is any
    List(list::List),
    /// One letter with its bytes, its attempts, and what waits behind it
    Show(show::Show),
    /// Run the handlers that failed again, with the original bytes; ends with 1 when a letter stays
    Redrive(act::Redrive),
    /// Give letters up for good: they stay in their table and block nobody
    Discard(act::Discard),
    /// What was done to letters and outboxes, by whom and why
    Operations(record::Operations),
    /// How far one operation is
    Operation(record::Operation),
}

/// Runs the verb.
///
/// # Errors
/// When a service does not answer, or refuses.
pub async fn run(verb: Verb, target: &Target, format: Format) -> anyhow::Result<Outcome> {
    let broker = Broker::connect(target, OPERATOR).await?;
    match verb {
        Verb::List(list) => list.run(&broker, format).await,
        Verb::Show(show) => show.run(&broker, format).await,
        Verb::Redrive(redrive) => redrive.run(&broker, format).await,
        Verb::Discard(discard) => discard.run(&broker, format).await,
        Verb::Operations(operations) => operations.run(&broker, format).await,
        Verb::Operation(operation) => operation.run(&broker, format).await,
    }
}
