//! Why a step of a flow is not taken. Pure.

use std::fmt;

use envelope::Timestamp;
use events::catalogue::ServiceEntry;
use serde::Serialize;
use uuid::Uuid;

use super::evidence::{Delivered, Sight};
use super::fact::spoken;
use super::progress::Expected;
use super::timeline::{Timeline, TimelineFact};

/// Why one step is open, and whose it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    /// The service that owes the step.
    pub service: String,
    /// Any of these settles it, `<domain>.<fact>`.
    pub expect: Vec<String>,
    /// The cause.
    #[serde(flatten)]
    pub cause: Cause,
}

/// What holds up a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Cause {
    /// It was taken, and the fact waits in the outbox.
    NotPublished {
        /// `<domain>.<fact>.v<major>`.
        event_type: String,
        /// For how long.
        waiting_seconds: f64,
        /// The last failure of the relay.
        error: Option<String>,
        /// Whether the relay gave it up.
        given_up: bool,
    },
    /// The subscriber has not come to the fact yet.
    NotReached {
        /// Which.
        subscriber: String,
        /// Facts for the service that were not delivered yet, if it says so.
        pending: Option<u64>,
    },
    /// No process of the service answers.
    SubscriberDown,
    /// The subscriber failed and tries again.
    Retrying {
        /// Which.
        subscriber: String,
        /// Executions that failed.
        attempt: u32,
        /// After so many it is given up, if it says so.
        attempts_max: Option<u32>,
        /// When it is tried again, if it says so.
        next_at: Option<Timestamp>,
        /// The last failure.
        error: String,
    },
    /// The delivery queues up behind an earlier one of its key that is kept.
    ParkedBehind {
        /// Which subscriber.
        subscriber: String,
        /// The earlier fact.
        behind: Uuid,
    },
    /// The delivery is kept as a dead letter.
    DeadLetter {
        /// Which subscriber.
        subscriber: String,
        /// The fact that it did not handle.
        event_id: Uuid,
        /// `parked`, `dead` or `discarded`.
        state: String,
        /// Why, as a code.
        reason: String,
        /// Why, in words.
        error: String,
    },
    /// The subscriber handled it and said nothing: by a rule that names a reason, or by mistake.
    NothingEmitted {
        /// Which.
        subscriber: String,
        /// The rule, if there was one.
        reason: Option<String>,
    },
    /// Nothing in the service reacts to what has happened by saying what is owed.
    NoSubscriber {
        /// Requests and timers of the service that may say it.
        actions: Vec<String>,
    },
    /// What is known does not tell.
    Unknown {
        /// What is missing.
        missing: String,
    },
}

/// Why the open steps of a flow are open. A step that waits for another open step of the flow is left out.
pub fn of(timeline: &Timeline, services: &[ServiceEntry], sight: impl Fn(&str) -> Sight) -> Vec<Why> {
    let mut found: Vec<(bool, Why)> = Vec::new();
    for step in &timeline.expected {
        let entry = services.iter().find(|entry| entry.service == step.owner);
        let candidates = candidates(step, timeline, entry);
        let cause = decide(step, timeline, entry, &candidates, &sight(&step.owner));
        let why = Why { service: step.owner.clone(), expect: step.expect.clone(), cause };
        if !found.iter().any(|(_, known)| known.service == why.service && known.cause == why.cause) {
            found.push((!candidates.is_empty(), why));
        }
    }
    // The step of the whole flow is open as long as any other is.
    let told = found.iter().any(|(has_candidates, _)| *has_candidates);
    found.into_iter().filter(|(has_candidates, _)| *has_candidates || !told).map(|(_, why)| why).collect()
}

/// The subscribers that may take the step, each with a fact of the flow that it hears.
pub(super) fn candidates<'a>(
    step: &Expected,
    timeline: &'a Timeline,
    entry: Option<&'a ServiceEntry>,
) -> Vec<(&'a str, &'a TimelineFact)> {
    let reactions = entry.into_iter().flat_map(|entry| &entry.reactions);
    let able = reactions.filter(|reaction| reaction.emits.iter().any(|said| step.expect.contains(said)));
    able.flat_map(|reaction| {
        let heard = timeline.facts.iter().filter(|fact| fact.fact() == reaction.on);
        heard.map(|fact| (reaction.subscriber.as_str(), fact))
    })
    .collect()
}

fn decide(
    step: &Expected,
    timeline: &Timeline,
    entry: Option<&ServiceEntry>,
    candidates: &[(&str, &TimelineFact)],
    sight: &Sight,
) -> Cause {
    if candidates.is_empty() {
        let actions = entry.into_iter().flat_map(|entry| &entry.actions);
        let able = actions.filter(|action| action.emits.iter().any(|said| step.expect.contains(said)));
        return Cause::NoSubscriber { actions: able.map(|action| action.name.clone()).collect() };
    }
    if !sight.alive {
        return Cause::SubscriberDown;
    }
    if let Some(cause) = unpublished(step, timeline, sight) {
        return cause;
    }
    let mut causes: Vec<Cause> =
        candidates.iter().map(|(subscriber, fact)| delivery(subscriber, fact, sight)).collect();
    causes.sort_by_key(rank);
    causes.into_iter().next().unwrap_or(Cause::Unknown { missing: "nothing is known".to_owned() })
}

/// A fact that settles the step and is not in the stream yet.
fn unpublished(step: &Expected, timeline: &Timeline, sight: &Sight) -> Option<Cause> {
    let keys: Vec<&String> = timeline.facts.iter().map(|fact| &fact.key).collect();
    let settles = |event_type: &str| {
        let fact = event_type.rsplit_once(".v").map_or(event_type, |(fact, _major)| fact);
        step.expect.iter().any(|expected| expected == fact)
    };
    let waiting = sight.unpublished.iter().find(|row| keys.contains(&&row.key) && settles(&row.event_type))?;
    Some(Cause::NotPublished {
        event_type: waiting.event_type.clone(),
        waiting_seconds: waiting.waiting_seconds,
        error: waiting.error.clone(),
        given_up: waiting.dead,
    })
}

/// How one delivery stands. What the service says of it is exact; the heartbeat adds when and how often.
fn delivery(subscriber: &str, fact: &TimelineFact, sight: &Sight) -> Cause {
    let subscriber_name = || subscriber.to_owned();
    let handler = sight.handlers.iter().find(|handler| handler.subscriber == subscriber);
    let waits = handler.and_then(|handler| handler.retrying.iter().find(|trouble| trouble.event_id == fact.id));
    let known = sight.deliveries.iter().find(|known| known.event_id == fact.id && known.subscriber == subscriber);
    if let Some(known) = known {
        return from_service(known, waits);
    }
    if let Some(trouble) = waits {
        return Cause::Retrying {
            subscriber: subscriber_name(),
            attempt: trouble.attempt,
            attempts_max: Some(trouble.attempts_max),
            next_at: Some(trouble.next_at),
            error: trouble.error.clone(),
        };
    }
    match handler.and_then(|handler| handler.watermark) {
        Some(watermark) if watermark >= fact.stream_sequence => {
            Cause::Unknown { missing: format!("{subscriber} has settled it, and does not remember how") }
        }
        None if !sight.explained => {
            Cause::Unknown { missing: "the service does not say how its deliveries get on".to_owned() }
        }
        // Exact, too: a delivery that nothing is known about was not begun.
        _ => Cause::NotReached { subscriber: subscriber_name(), pending: sight.pending },
    }
}

fn from_service(known: &Delivered, waits: Option<&crate::ops::Trouble>) -> Cause {
    let subscriber = known.subscriber.clone();
    let attempt = known.attempts.unwrap_or_default().unsigned_abs();
    let error = known.error.clone().unwrap_or_default();
    match (known.state.as_str(), known.behind) {
        ("parked", Some(behind)) => Cause::ParkedBehind { subscriber, behind },
        ("parked" | "dead" | "discarded", _) => Cause::DeadLetter {
            subscriber,
            event_id: known.event_id,
            state: known.state.clone(),
            reason: known.reason.clone().unwrap_or_default(),
            error,
        },
        ("retrying", _) => Cause::Retrying {
            subscriber,
            attempt: waits.map_or(attempt, |trouble| trouble.attempt.max(attempt)),
            attempts_max: waits.map(|trouble| trouble.attempts_max),
            next_at: waits.map(|trouble| trouble.next_at),
            error: if error.is_empty() { "the execution was cut off".to_owned() } else { error },
        },
        ("handled" | "no_effect", _) => Cause::NothingEmitted { subscriber, reason: known.reason.clone() },
        (other, _) => Cause::Unknown { missing: format!("the state {other} is not known here") },
    }
}

/// What stands in the way most comes first.
fn rank(cause: &Cause) -> u8 {
    match cause {
        Cause::DeadLetter { .. } => 0,
        Cause::ParkedBehind { .. } => 1,
        Cause::Retrying { .. } => 2,
        Cause::NotPublished { .. } => 3,
        Cause::SubscriberDown => 4,
        Cause::NotReached { .. } => 5,
        // A handler that was meant to be silent explains less than one that was not.
        Cause::NothingEmitted { reason: None, .. } => 6,
        Cause::NothingEmitted { reason: Some(_), .. } => 7,
        Cause::NoSubscriber { .. } => 8,
        Cause::Unknown { .. } => 9,
    }
}

impl Cause {
    /// Whether nothing moves without a person.
    pub fn needs_a_person(&self) -> bool {
        matches!(self, Self::DeadLetter { .. } | Self::ParkedBehind { .. } | Self::NotPublished { given_up: true, .. })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owed: Vec<String> = self.expect.iter().map(|fact| spoken(fact)).collect();
        write!(f, "{} of {}: {}", owed.join(" or "), self.service, self.cause)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPublished { event_type, waiting_seconds, error, given_up } => {
                let how = if *given_up { "given up by the relay" } else { "not published yet" };
                write!(f, "{event_type} is {how}, for {}", crate::outbox::seconds(*waiting_seconds))?;
                error.iter().try_for_each(|error| write!(f, ": {error}"))
            }
            Self::NotReached { subscriber, pending: Some(pending) } => {
                write!(f, "not reached: {subscriber} has not come to it, {pending} facts are before the service")
            }
            Self::NotReached { subscriber, pending: None } => write!(f, "not reached: {subscriber} has not come to it"),
            Self::SubscriberDown => f.write_str("subscriber down: no process of the service answers"),
            Self::Retrying { subscriber, attempt, attempts_max, next_at, error } => {
                write!(f, "retrying: {subscriber} failed {attempt} times")?;
                attempts_max.iter().try_for_each(|most| write!(f, " of {most}"))?;
                next_at.iter().try_for_each(|at| write!(f, ", next at {at}"))?;
                write!(f, ": {error}")
            }
            Self::ParkedBehind { subscriber, behind } => {
                write!(f, "parked: {subscriber} keeps it behind the earlier fact {behind}")
            }
            Self::DeadLetter { subscriber, event_id, reason, error, .. } => {
                write!(f, "dead letter: {subscriber} keeps {event_id} ({reason}): {error}")
            }
            Self::NothingEmitted { subscriber, reason: Some(reason) } => {
                write!(f, "handled, nothing said: {subscriber} decided so ({reason})")
            }
            Self::NothingEmitted { subscriber, reason: None } => {
                write!(f, "handled, nothing said: {subscriber} has a bug, or a rule is missing")
            }
            Self::NoSubscriber { actions } if actions.is_empty() => f.write_str("no subscriber says it"),
            Self::NoSubscriber { actions } => write!(f, "no subscriber says it, only {}", actions.join(", ")),
            Self::Unknown { missing } => write!(f, "unknown: {missing}"),
        }
    }
}
