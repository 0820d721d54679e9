//! `flows tail`: facts as they are stored, one a line.

use std::fmt;

use async_nats::jetstream::consumer::DeliverPolicy;
use clap::Args;
use envelope::{DecodeError, Timestamp, bucket};
use futures_util::StreamExt;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::fact::{StoredFact, spoken};
use super::phrase::phrase;
use super::read;
use crate::broker::Broker;
use crate::outcome::{Failure, Outcome};
use crate::output::{Format, say};

/// What to follow.
#[derive(Debug, Clone, Args)]
pub struct Tail {
    /// Only the facts of this flow: of an order, its id
    #[arg(long, value_name = "ORDER_ID")]
    flow: Option<Uuid>,
    /// Begin with everything that is stored, instead of what comes next
    #[arg(long)]
    all: bool,
    /// End after so many facts; without it, Ctrl-C ends it
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

/// One line.
#[derive(Debug, Serialize)]
struct Line {
    stream_sequence: u64,
    stored_at: Timestamp,
    time: Timestamp,
    id: Uuid,
    flow_id: Uuid,
    caused_by: Option<Uuid>,
    #[serde(rename = "type")]
    event_type: String,
    service: String,
    speaker: String,
    data: Value,
    #[serde(skip)]
    fact: String,
}

impl Tail {
    pub(super) async fn run(self, broker: &Broker, format: Format) -> anyhow::Result<Outcome> {
        // A flow's facts share the bucket of its id as long as they are about it.
        let filter = self.flow.map_or("evt.>".to_owned(), |flow| format!("evt.*.*.*.{}", bucket(&flow.to_string())));
        let from = if self.all { DeliverPolicy::All } else { DeliverPolicy::New };
        let mut messages = read::open(broker, &filter, from).await?.messages().await?;
        let mut left = self.count.unwrap_or(u64::MAX);
        while left > 0 {
            let message = tokio::select! {
                message = messages.next() => message,
                interrupted = tokio::signal::ctrl_c() => {
                    interrupted?;
                    return Ok(Outcome::Yes);
                }
            };
            let message = message.ok_or_else(|| Failure::unreachable("the stream ended"))??;
            match StoredFact::read(&message) {
                Ok(fact) if self.flow.is_none_or(|flow| flow == fact.metadata.correlation_id) => {
                    format.print_line(&Line::new(fact))?;
                    left -= 1;
                }
                Ok(_) => {}
                Err(error) => say(format_args!("{}: {}", message.subject, told(&error))),
            }
        }
        Ok(Outcome::Yes)
    }
}

/// The error with its causes.
fn told(error: &DecodeError) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    causes.fold(format!("no fact: {error}"), |text, cause| format!("{text}: {cause}"))
}

impl Line {
    fn new(fact: StoredFact) -> Self {
        Self {
            stream_sequence: fact.stream_sequence,
            stored_at: fact.stored_at,
            time: fact.metadata.time,
            id: fact.metadata.id,
            flow_id: fact.metadata.correlation_id,
            caused_by: fact.metadata.causation_id,
            event_type: fact.metadata.event_type.to_string(),
            service: fact.service().to_owned(),
            speaker: fact.speaker().to_owned(),
            fact: fact.fact(),
            data: fact.data,
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stored_at, flow_id, service, fact, data, .. } = self;
        let line = format!("{stored_at}  {flow_id}  {service:<10}  {:<17}  {}", spoken(fact), phrase(data));
        f.write_str(line.trim_end())
    }
}
