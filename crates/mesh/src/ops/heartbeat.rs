//! What a process tells of itself each second.

use envelope::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use super::position::Position;
use super::{Ops, Retrying};
use crate::context::ServiceContext;

/// Deliveries in trouble that are listed for one subscriber; more are counted.
const LISTED_MAX: usize = 20;

/// One heartbeat.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Heartbeat<'a> {
    pub(super) kind: &'static str,
    pub(super) service: &'static str,
    pub(super) build: &'static str,
    /// Of what the build hears: equal among replicas that hear the same.
    pub(super) contract: &'a str,
    /// This process; another one after a restart.
    pub(super) instance: Uuid,
    pub(super) started_at: Timestamp,
    pub(super) at: Timestamp,
    /// Grows by one with every heartbeat of the process, told or not: a gap shows a loss.
    pub(super) number: u64,
    /// Nothing when the service has no outbox, or has not looked yet.
    pub(super) outbox: Option<Outbox>,
    /// Nothing when the service has no database.
    pub(super) database: Option<Reach>,
    pub(super) nats: Reach,
    /// This process's clock minus the server's; nothing when the server could not be asked.
    pub(super) clock_offset_ms: Option<i64>,
    pub(super) in_flight: u64,
    /// Messages of the stream that are for this service and were not delivered; nothing when the server could not be asked.
    pub(super) pending: Option<u64>,
    /// Messages that are delivered and not acknowledged, to any replica.
    pub(super) unacknowledged: Option<u64>,
    pub(super) handlers: Vec<Handler>,
    /// Operational events that could not be told since the process began.
    pub(super) events_dropped: u64,
}

/// Whether something answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Reach {
    pub(super) ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
}

/// The outbox of the service.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Outbox {
    /// Facts that are committed and not acknowledged, counted up to a million.
    pub(super) unsent: u64,
    /// Age of the oldest of them, 0 when there is none.
    pub(super) oldest_seconds: f64,
    /// Facts that were given up.
    pub(super) failed: u64,
    /// How old these numbers are.
    pub(super) taken_seconds_ago: f64,
    /// The last publish of this process that failed.
    pub(super) last_error: Option<LastError>,
}

/// A failure and its time.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct LastError {
    pub(super) at: Timestamp,
    pub(super) error: String,
}

/// One subscriber.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Handler {
    pub(super) subscriber: String,
    /// Every message for it up to this stream sequence is settled or kept. It is the durable's, so a lower bound for each of
    /// its subscribers. Nothing when the server could not be asked.
    pub(super) watermark: Option<u64>,
    /// Deliveries of this process that wait for another try, at most twenty, lowest sequence first.
    pub(super) retrying: Vec<Trouble>,
    /// All of them.
    pub(super) retrying_count: u64,
    /// Deliveries that are kept and may go on.
    pub(super) parked: u64,
    /// Deliveries that were given up.
    pub(super) dead: u64,
}

/// A delivery that waits for another try.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Trouble {
    pub(super) event_id: Uuid,
    pub(super) sequence: u64,
    pub(super) attempt: u32,
    pub(super) attempts_max: u32,
    pub(super) next_at: Timestamp,
    pub(super) error: String,
}

/// What does not change in the life of a process.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) contract: String,
    pub(super) subscribers: Vec<&'static str>,
    pub(super) started_at: Timestamp,
}

impl Ops {
    /// Everything that is known, as one heartbeat.
    pub(super) fn heartbeat<'a>(
        &self,
        context: &ServiceContext,
        identity: &'a Identity,
        number: u64,
        position: Option<Position>,
        (database, nats): (Option<Reach>, Reach),
    ) -> Heartbeat<'a> {
        Heartbeat {
            kind: "heartbeat",
            service: context.name,
            build: context.build,
            contract: &identity.contract,
            instance: context.instance,
            started_at: identity.started_at,
            at: context.clock.now(),
            number,
            outbox: self.outbox_now(),
            database,
            nats,
            clock_offset_ms: position.and_then(|position| position.clock_offset_ms),
            in_flight: self.in_flight.load(std::sync::atomic::Ordering::Relaxed),
            pending: position.map(|position| position.pending),
            unacknowledged: position.map(|position| position.unacknowledged),
            handlers: self.handlers(identity, position),
            events_dropped: self.events_dropped(),
        }
    }

    fn outbox_now(&self) -> Option<Outbox> {
        let board = self.lock();
        let (taken, gauges) = board.outbox?;
        let last_error = board.relay_trouble.as_ref();
        Some(Outbox {
            unsent: gauges.pending,
            oldest_seconds: gauges.oldest.as_secs_f64(),
            failed: gauges.failed,
            taken_seconds_ago: taken.elapsed().as_secs_f64(),
            last_error: last_error.map(|(at, error)| LastError { at: *at, error: error.clone() }),
        })
    }

    fn handlers(&self, identity: &Identity, position: Option<Position>) -> Vec<Handler> {
        let board = self.lock();
        let handler = |subscriber: &&'static str| {
            let of_it = board.retrying.iter().filter(|((_, of), _)| of == subscriber);
            let mut retrying: Vec<Trouble> =
                of_it.map(|((event_id, _), retrying)| trouble(*event_id, retrying)).collect();
            let retrying_count = retrying.len() as u64;
            retrying.sort_by_key(|trouble| trouble.sequence);
            retrying.truncate(LISTED_MAX);
            let kept = board.kept.iter().find(|kept| kept.subscriber == **subscriber);
            Handler {
                subscriber: (*subscriber).to_owned(),
                watermark: position.map(|position| position.watermark),
                retrying,
                retrying_count,
                parked: kept.map_or(0, |kept| kept.parked),
                dead: kept.map_or(0, |kept| kept.dead),
            }
        };
        identity.subscribers.iter().map(handler).collect()
    }
}

fn trouble(event_id: Uuid, retrying: &Retrying) -> Trouble {
    Trouble {
        event_id,
        sequence: retrying.sequence,
        attempt: retrying.attempt,
        attempts_max: retrying.attempts_max,
        next_at: retrying.next_at,
        error: retrying.error.clone(),
    }
}
