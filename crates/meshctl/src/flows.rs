//! `flows`: what happened to an order, from the stream alone.

pub mod fact;
pub mod phrase;
pub mod progress;
pub mod read;
mod tail;
mod text;
pub mod timeline;

use clap::{Args, Subcommand};
use uuid::Uuid;

use crate::broker::Broker;
use crate::clock;
use crate::outcome::Outcome;
use crate::output::Format;
use crate::permissions::OPERATOR;
use crate::target::Target;

pub use text::duration;
use timeline::Timeline;

/// What to do with flows.
#[derive(Debug, Clone, Subcommand)]
pub enum Verb {
    /// The story of one flow, and what is still expected; ends with 1 when there is no such flow
    Show(Show),
    /// Facts as they are stored
    Tail(tail::Tail),
}

/// Which flow.
#[derive(Debug, Clone, Args)]
pub struct Show {
    /// The flow: of an order, its id
    order_id: Uuid,
}

/// Runs the verb.
///
/// # Errors
/// When the stream cannot be read.
pub async fn run(verb: Verb, target: &Target, format: Format) -> anyhow::Result<Outcome> {
    let broker = Broker::connect(target, OPERATOR).await?;
    match verb {
        Verb::Show(show) => match timeline(&broker, show.order_id).await? {
            Some(timeline) => format.print(&timeline).map(|()| Outcome::Yes).map_err(Into::into),
            None => {
                crate::output::say(format_args!("there is no fact of flow {} in the stream", show.order_id));
                Ok(Outcome::No)
            }
        },
        Verb::Tail(tail) => tail.run(&broker, format).await,
    }
}

/// The flow as the stream tells it now; nothing when it has no fact there.
///
/// # Errors
/// When the stream cannot be read.
pub async fn timeline(broker: &Broker, flow_id: Uuid) -> anyhow::Result<Option<Timeline>> {
    let facts = read::flow(broker, flow_id).await?;
    Ok(Timeline::new(flow_id, facts, &events::flow::all(), clock::now()))
}

#[cfg(test)]
mod tests;
