//! `flows`: what happened to an order, from the stream alone, and why it does not go on, from what services say.

pub mod cause;
pub mod evidence;
pub mod fact;
mod list;
pub mod phrase;
pub mod progress;
pub mod read;
pub mod scan;
pub mod state;
mod stuck;
mod tail;
mod text;
pub mod timeline;

use std::fmt;

use clap::{Args, Subcommand};
use serde::Serialize;
use uuid::Uuid;

use crate::broker::Broker;
use crate::clock;
use crate::outcome::Outcome;
use crate::output::Format;
use crate::permissions::OPERATOR;
use crate::target::Target;

use cause::Why;
pub use text::duration;
use timeline::Timeline;

/// What to do with flows.
#[derive(Debug, Clone, Subcommand)]
pub enum Verb {
    /// The flows of a while, newest first, and how they are
    List(list::List),
    /// What does not go on, by cause; ends with 1 when there is any
    Stuck(stuck::Stuck),
    /// The story of one flow, what is still expected and why it does not come; ends with 1 when there is no such flow
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
            Some(timeline) => {
                format.print(&explained(&broker, timeline).await?).map(|()| Outcome::Yes).map_err(Into::into)
            }
            None => {
                crate::output::say(format_args!("there is no fact of flow {} in the stream", show.order_id));
                Ok(Outcome::No)
            }
        },
        Verb::List(list) => list.run(&broker, format).await,
        Verb::Stuck(stuck) => stuck.run(&broker, format).await,
        Verb::Tail(tail) => tail.run(&broker, format).await,
    }
}

/// A flow, and why it does not go on.
#[derive(Debug, Serialize)]
struct Explained {
    #[serde(flatten)]
    timeline: Timeline,
    /// One entry for each step that holds up the others; empty when nothing is owed.
    why: Vec<Why>,
}

/// Asks the services that owe something.
async fn explained(broker: &Broker, timeline: Timeline) -> anyhow::Result<Explained> {
    let services = events::catalogue::services()?;
    let sights = evidence::gather(broker, std::slice::from_ref(&timeline), &services).await?;
    let why = cause::of(&timeline, &services, |service| sights.get(service).cloned().unwrap_or_default());
    Ok(Explained { timeline, why })
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.timeline)?;
        text::section(f, "why it does not go on", self.why.iter().map(Why::to_string))
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
