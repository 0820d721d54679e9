//! What services tell of themselves on `mesh.ops.<service>`.

use std::collections::BTreeMap;
use std::time::Duration;

use envelope::Timestamp;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::broker::Broker;
use crate::outcome::Failure;

/// Heartbeats come each second: a process that is silent for so long is gone, or cut off.
const LISTENED_FOR: Duration = Duration::from_millis(2_200);

/// One heartbeat, as far as it is needed here; `docs/operations-events.md` describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Who.
    pub service: String,
    /// Which process of it.
    pub instance: Uuid,
    /// Messages for the service that were not delivered yet.
    pub pending: Option<u64>,
    /// Its subscribers.
    #[serde(default)]
    pub handlers: Vec<Handler>,
}

/// One subscriber of a heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Handler {
    /// Its name.
    pub subscriber: String,
    /// Every message up to this stream sequence is settled or kept.
    pub watermark: Option<u64>,
    /// What waits for another try.
    #[serde(default)]
    pub retrying: Vec<Trouble>,
}

/// A delivery that waits for another try.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trouble {
    /// The fact.
    pub event_id: Uuid,
    /// Executions that failed.
    pub attempt: u32,
    /// After so many it is given up.
    pub attempts_max: u32,
    /// When it is tried again.
    pub next_at: Timestamp,
    /// The last failure.
    pub error: String,
}

/// Listens for a little more than two heartbeats; the last one of each process, by service.
///
/// # Errors
/// Unreachable when the subscription cannot be made.
pub async fn heartbeats(broker: &Broker) -> anyhow::Result<BTreeMap<String, Vec<Heartbeat>>> {
    let lost = |error: String| Failure::unreachable(format!("cannot listen to heartbeats: {error}"));
    let mut heard = broker.client.subscribe("mesh.ops.*").await.map_err(|error| lost(error.to_string()))?;
    let deadline = Instant::now() + LISTENED_FOR;
    let mut last: BTreeMap<Uuid, Heartbeat> = BTreeMap::new();
    while let Ok(Some(message)) = timeout_at(deadline, heard.next()).await {
        // A form that is not known here is one of another build, and says nothing to this one.
        if let Ok(heartbeat) = serde_json::from_slice::<Heartbeat>(&message.payload) {
            last.insert(heartbeat.instance, heartbeat);
        }
    }
    let mut services: BTreeMap<String, Vec<Heartbeat>> = BTreeMap::new();
    for heartbeat in last.into_values() {
        services.entry(heartbeat.service.clone()).or_default().push(heartbeat);
    }
    Ok(services)
}
