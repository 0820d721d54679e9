//! Facts out of the stream, by a consumer that leaves no trace.

use std::time::Duration;

use anyhow::Context;
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use envelope::{Timestamp, bucket, ids};
use futures_util::StreamExt;
use serde_json::json;
use time::OffsetDateTime;
use uuid::Uuid;

use super::fact::StoredFact;
use crate::broker::Broker;
use crate::outcome::Failure;
use crate::output::Progress;

/// The one stream that carries all facts.
pub const STREAM: &str = "EVT";

/// How far the clock that made an id may be ahead of the server's.
const CLOCK_OFFSET: Duration = Duration::from_secs(3_600);
/// Longest pause between two messages of a stream that has more.
const NEXT_WITHIN: Duration = Duration::from_secs(30);

/// An ordered consumer of the stream: no acknowledgements, and recreated by itself when a message is missing.
pub(crate) type Ordered = async_nats::jetstream::consumer::Consumer<pull::OrderedConfig>;

/// Opens an ordered consumer on facts of these subjects.
///
/// # Errors
/// When there is no stream or it cannot be read.
pub(crate) async fn open(broker: &Broker, filter: &str, from: DeliverPolicy) -> anyhow::Result<Ordered> {
    let config = pull::OrderedConfig {
        filter_subject: filter.to_owned(),
        deliver_policy: from,
        ..pull::OrderedConfig::default()
    };
    // Looked at first, because a missing stream has a remedy of its own.
    broker.api(&format!("STREAM.INFO.{STREAM}"), &json!({})).await.map_err(|error| {
        let remedy = if error.is_not_found() { "; `meshctl streams apply` makes it" } else { "" };
        error.during(format!("cannot read the stream {STREAM}{remedy}"))
    })?;
    let stream = broker.jetstream.get_stream_no_info(STREAM).await?;
    stream.create_consumer(config).await.with_context(|| format!("cannot read the stream {STREAM}"))
}

/// All facts of a flow that are stored now, copies included.
///
/// The facts of a flow are about one key as a rule, so that they share a bucket, and its id tells when it began: that
/// narrows the search. When nothing is found so, everything is read.
///
/// # Errors
/// When the stream cannot be read.
pub async fn flow(broker: &Broker, flow_id: Uuid) -> anyhow::Result<Vec<StoredFact>> {
    let bucket = format!("evt.*.*.*.{}", bucket(&flow_id.to_string()));
    let facts = stored(broker, flow_id, &bucket, since(flow_id)).await?;
    if facts.is_empty() { stored(broker, flow_id, "evt.>", DeliverPolicy::All).await } else { Ok(facts) }
}

async fn stored(broker: &Broker, flow_id: Uuid, filter: &str, from: DeliverPolicy) -> anyhow::Result<Vec<StoredFact>> {
    let consumer = open(broker, filter, from).await?;
    let total = consumer.cached_info().num_pending;
    let mut facts = Vec::new();
    if total == 0 {
        return Ok(facts);
    }
    let mut progress = Progress::new("reading the stream", total);
    let mut messages = consumer.messages().await?;
    loop {
        let message = next(&mut messages).await?;
        let left = message.info().map_err(|error| anyhow::anyhow!("a delivery without its place: {error}"))?.pending;
        // What is no envelope is no fact of this flow.
        facts.extend(StoredFact::read(&message).ok().filter(|fact| fact.metadata.correlation_id == flow_id));
        progress.at(total.saturating_sub(left));
        if left == 0 {
            return Ok(facts);
        }
    }
}

pub(super) async fn next(messages: &mut pull::Ordered) -> anyhow::Result<Message> {
    let silent = || Failure::unreachable("the stream went silent in the middle of being read");
    let message = tokio::time::timeout(NEXT_WITHIN, messages.next()).await.map_err(|_| silent())?;
    Ok(message.ok_or_else(silent)??)
}

/// A time-ordered id was made when its flow began, and no fact of it is older.
fn since(flow_id: Uuid) -> DeliverPolicy {
    let began = i128::from(ids::millis(flow_id)) * 1_000_000;
    match OffsetDateTime::from_unix_timestamp_nanos(began) {
        Ok(began) if matches!(flow_id.get_version_num(), 7 | 8) => {
            DeliverPolicy::ByStartTime { start_time: Timestamp::from_offset(began - CLOCK_OFFSET).as_offset() }
        }
        _ => DeliverPolicy::All,
    }
}
