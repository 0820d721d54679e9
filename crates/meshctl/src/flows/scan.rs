//! All flows of a while, out of the stream.

use std::collections::HashMap;
use std::str::FromStr;

use async_nats::jetstream::consumer::DeliverPolicy;
use envelope::{Timestamp, ids};
use time::Duration;
use uuid::Uuid;

use super::fact::StoredFact;
use super::read;
use super::timeline::Timeline;
use crate::broker::Broker;
use crate::output::Progress;

/// What was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Scanned {
    /// Flows that began in the while, complete.
    pub flows: Vec<Timeline>,
    /// The last place of the stream that was read.
    pub as_of: u64,
    /// Flows that have facts in the while and began before it, so that they would be told in part only.
    pub begun_earlier: usize,
}

/// A time to begin at: an instant, or so long ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// So long before now.
    Ago(Duration),
    /// Then.
    At(Timestamp),
}

impl Since {
    /// The instant, seen from `now`.
    pub fn before(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Ago(ago) => Timestamp::from_offset(now.as_offset() - ago),
            Self::At(at) => at,
        }
    }
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unusable =
            || format!("{text:?} is neither like 90s, 15m, 2h or 7d nor an instant like 2026-01-31T09:30:00Z");
        if text.contains('T') {
            let format = &time::format_description::well_known::Rfc3339;
            return time::OffsetDateTime::parse(text, format)
                .map(Timestamp::from_offset)
                .map(Self::At)
                .map_err(|_| unusable());
        }
        let unit = text.chars().last().ok_or_else(unusable)?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return Err(unusable()),
        };
        let count: u32 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| unusable())?;
        Ok(Self::Ago(Duration::seconds(i64::from(count) * seconds)))
    }
}

/// Reads everything that was stored since `start`, and tells the flows that began then or later as they stand at `now`.
///
/// # Errors
/// When the stream cannot be read.
pub async fn since(broker: &Broker, start: Timestamp, now: Timestamp) -> anyhow::Result<Scanned> {
    let consumer = read::open(broker, "evt.>", DeliverPolicy::ByStartTime { start_time: start.as_offset() }).await?;
    let total = consumer.cached_info().num_pending;
    let mut flows: HashMap<Uuid, Vec<StoredFact>> = HashMap::new();
    let mut as_of = 0;
    if total > 0 {
        let mut progress = Progress::new("reading the stream", total);
        let mut messages = consumer.messages().await?;
        loop {
            let message = read::next(&mut messages).await?;
            let info = message.info().map_err(|error| anyhow::anyhow!("a delivery without its place: {error}"))?;
            let left = info.pending;
            as_of = info.stream_sequence;
            // What is no envelope is no fact of any flow.
            if let Ok(fact) = StoredFact::read(&message) {
                flows.entry(fact.metadata.correlation_id).or_default().push(fact);
            }
            progress.at(total.saturating_sub(left));
            if left == 0 {
                break;
            }
        }
    }
    Ok(told(flows, as_of, start, now))
}

pub(super) fn told(flows: HashMap<Uuid, Vec<StoredFact>>, as_of: u64, start: Timestamp, now: Timestamp) -> Scanned {
    let kinds = events::flow::all();
    let tell = |(flow_id, facts): (Uuid, Vec<StoredFact>)| Timeline::new(flow_id, facts, &kinds, now);
    let (flows, earlier): (Vec<Timeline>, Vec<Timeline>) =
        flows.into_iter().filter_map(tell).partition(|flow| flow.kind.is_some() || !began_before(flow.flow_id, start));
    Scanned { flows, as_of, begun_earlier: earlier.len() }
}

/// A time-ordered id tells when its flow began.
fn began_before(flow_id: Uuid, start: Timestamp) -> bool {
    let began = i64::try_from(ids::millis(flow_id)).unwrap_or(i64::MAX);
    matches!(flow_id.get_version_num(), 7 | 8) && began < start.unix_millis()
}
