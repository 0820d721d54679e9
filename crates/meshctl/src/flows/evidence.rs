//! What services say about the deliveries of some flows.

use std::collections::{BTreeMap, BTreeSet};

use events::catalogue::ServiceEntry;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::cause::candidates;
use super::timeline::Timeline;
use crate::broker::{Broker, RequestError};
use crate::control;
use crate::ops::{self, Handler, Heartbeat};

/// Facts, and keys, in one question: half of what a service takes.
const ASKED_AT_ONCE: usize = 200;

/// What is seen of one service.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sight {
    /// Whether any process of it told or answered something.
    pub alive: bool,
    /// Whether it said how deliveries get on.
    pub explained: bool,
    /// Messages for it that were not delivered yet.
    pub pending: Option<u64>,
    /// Its subscribers, by the heartbeats of all its processes.
    pub handlers: Vec<Handler>,
    /// The deliveries that it knows something about.
    pub deliveries: Vec<Delivered>,
    /// What it has committed and the stream has not.
    pub unpublished: Vec<Unpublished>,
}

/// How one fact got on with one subscriber, as the service tells it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Delivered {
    /// The fact.
    pub event_id: Uuid,
    /// Who hears it.
    pub subscriber: String,
    /// `handled`, `no_effect`, `retrying`, `parked`, `dead`, `discarded`.
    pub state: String,
    /// Why, as a code.
    pub reason: Option<String>,
    /// The last failure.
    pub error: Option<String>,
    /// Executions that did not settle it.
    pub attempts: Option<i32>,
    /// The kept fact that it queues up behind.
    pub behind: Option<Uuid>,
}

/// A fact in an outbox, as the service tells it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Unpublished {
    /// `<domain>.<fact>.v<major>`.
    pub event_type: String,
    /// What it is about.
    pub key: String,
    /// Whether the relay gave it up.
    pub dead: bool,
    /// The last failure.
    pub error: Option<String>,
    /// Since it was committed.
    pub waiting_seconds: f64,
}

#[derive(Debug, Deserialize)]
struct Explained {
    deliveries: Vec<Delivered>,
    unpublished: Vec<Unpublished>,
}

/// Looks at the services that owe something to these flows.
///
/// # Errors
/// When the broker cannot be listened to; a service that does not answer is seen as such.
pub async fn gather(
    broker: &Broker,
    timelines: &[Timeline],
    services: &[ServiceEntry],
) -> anyhow::Result<BTreeMap<String, Sight>> {
    let questions = questions(timelines, services);
    if questions.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut heartbeats = ops::heartbeats(broker).await?;
    let mut sights = BTreeMap::new();
    for (service, (events, keys)) in questions {
        let mut sight = seen(&heartbeats.remove(&service).unwrap_or_default());
        ask(broker, &service, &events, &keys, &mut sight).await;
        sights.insert(service, sight);
    }
    Ok(sights)
}

/// What to ask each service: the facts that its subscribers hear, and the keys about which it owes something.
fn questions(timelines: &[Timeline], services: &[ServiceEntry]) -> BTreeMap<String, (Vec<Uuid>, Vec<String>)> {
    let mut asked: BTreeMap<String, (BTreeSet<Uuid>, BTreeSet<String>)> = BTreeMap::new();
    for timeline in timelines {
        for step in &timeline.expected {
            let entry = services.iter().find(|entry| entry.service == step.owner);
            let (events, keys) = asked.entry(step.owner.clone()).or_default();
            events.extend(candidates(step, timeline, entry).into_iter().map(|(_, fact)| fact.id));
            keys.extend(timeline.facts.iter().map(|fact| fact.key.clone()));
        }
    }
    let listed = |(service, (events, keys)): (String, (BTreeSet<Uuid>, BTreeSet<String>))| {
        (service, (events.into_iter().collect(), keys.into_iter().collect()))
    };
    asked.into_iter().map(listed).collect()
}

/// The heartbeats of all processes of a service as one: the server's watermark is the same for all, what waits is each one's.
fn seen(heartbeats: &[Heartbeat]) -> Sight {
    let mut handlers: Vec<Handler> = Vec::new();
    for handler in heartbeats.iter().flat_map(|heartbeat| &heartbeat.handlers) {
        match handlers.iter_mut().find(|known| known.subscriber == handler.subscriber) {
            Some(known) => {
                known.watermark = known.watermark.max(handler.watermark);
                known.retrying.extend(handler.retrying.iter().cloned());
            }
            None => handlers.push(handler.clone()),
        }
    }
    let pending = heartbeats.iter().filter_map(|heartbeat| heartbeat.pending).max();
    Sight { alive: !heartbeats.is_empty(), pending, handlers, ..Sight::default() }
}

async fn ask(broker: &Broker, service: &str, events: &[Uuid], keys: &[String], sight: &mut Sight) {
    let (mut events, mut keys) = (events.chunks(ASKED_AT_ONCE), keys.chunks(ASKED_AT_ONCE));
    loop {
        let (some_events, some_keys) = (events.next(), keys.next());
        if some_events.is_none() && some_keys.is_none() {
            return;
        }
        let question = json!({ "events": some_events.unwrap_or_default(), "keys": some_keys.unwrap_or_default() });
        match control::ask_for::<Explained>(broker, service, "explain", &question).await {
            Ok(Explained { deliveries, unpublished }) => {
                sight.deliveries.extend(deliveries);
                sight.unpublished.extend(unpublished);
                (sight.alive, sight.explained) = (true, true);
            }
            // It is there and cannot say: its database is away, for one.
            Err(RequestError::Api { .. }) => {
                (sight.alive, sight.explained) = (true, false);
                return;
            }
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Trouble;

    #[test]
    fn replicas_are_seen_as_one_service() {
        let trouble = |id: u128| Trouble {
            event_id: Uuid::from_u128(id),
            attempt: 1,
            attempts_max: 5,
            next_at: "2026-01-31T09:30:00.000Z".parse().unwrap(),
            error: "no".to_owned(),
        };
        let beat = |instance: u128, watermark, retrying| Heartbeat {
            service: "orders".to_owned(),
            instance: Uuid::from_u128(instance),
            pending: watermark,
            handlers: vec![Handler { subscriber: "confirm".to_owned(), watermark, retrying }],
        };
        // One of them could not ask the server just then.
        let sight = seen(&[beat(1, None, vec![trouble(7)]), beat(2, Some(40), vec![trouble(8)])]);
        assert!(sight.alive && !sight.explained);
        assert_eq!(
            (sight.pending, sight.handlers[0].watermark, sight.handlers[0].retrying.len()),
            (Some(40), Some(40), 2)
        );
        assert!(!seen(&[]).alive);
    }
}
