//! The story of one flow, told from its facts alone. Pure.

use std::collections::{BTreeMap, HashMap};

use envelope::Timestamp;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::fact::{StoredFact, spoken};
use super::phrase::phrase;
use super::progress::{self, Expected};
use super::state::{self, FlowState};

/// One flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline {
    /// The correlation id of all its facts; of an order flow, the order.
    pub flow_id: Uuid,
    /// Which declared kind of flow it is, by the fact that it begins with.
    pub kind: Option<String>,
    /// How it is.
    pub state: FlowState,
    /// Whether it has ended and nothing is owed any more.
    pub finished: bool,
    /// The facts that end it, `<domain>.<fact>`, first one first.
    pub ended_with: Vec<String>,
    /// When its first fact happened.
    pub started_at: Timestamp,
    /// From the first fact to the last, in milliseconds.
    pub duration_ms: i64,
    /// First occurrences, in the order of the stream.
    pub facts: Vec<TimelineFact>,
    /// What is still owed, by whom, and until when.
    pub expected: Vec<Expected>,
    /// What should not be.
    pub anomalies: Vec<String>,
}

/// One fact of a flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimelineFact {
    /// Identity of the fact.
    pub id: Uuid,
    /// `<domain>.<fact>.v<major>`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The service that said it.
    pub service: String,
    /// The subscriber, endpoint or timer in it.
    pub speaker: String,
    /// What it is about: order is kept by it.
    pub key: String,
    /// When it happened.
    pub time: Timestamp,
    /// Since the flow began, in milliseconds. Clocks of different services may make it negative.
    pub delay_ms: i64,
    /// Place of the first occurrence in the stream.
    pub stream_sequence: u64,
    /// When that was stored.
    pub stored_at: Timestamp,
    /// The key's gapless version in its source; 0 when it is not known.
    pub key_sequence: u64,
    /// The fact that was reacted to.
    pub caused_by: Option<Uuid>,
    /// Its name, `<domain>.<fact>`, when it is in the stream.
    pub because_of: Option<String>,
    /// How many facts lead to this one.
    pub depth: usize,
    /// The body in a few words.
    pub phrase: String,
    /// The body.
    pub data: Value,
    /// Places of further copies that say the same.
    pub duplicates: Vec<u64>,
    /// Places of messages under the same id that say something else.
    pub conflicts: Vec<u64>,
}

impl TimelineFact {
    /// The name without its major, `<domain>.<fact>`.
    pub fn fact(&self) -> &str {
        self.event_type.rsplit_once(".v").map_or(self.event_type.as_str(), |(fact, _major)| fact)
    }
}

impl Timeline {
    /// Tells the flow `flow_id` out of its facts, as it stands at `now`. Nothing when there is no fact of it.
    pub fn new(flow_id: Uuid, facts: Vec<StoredFact>, flows: &[events::flow::Flow], now: Timestamp) -> Option<Self> {
        let mut facts: Vec<StoredFact> =
            facts.into_iter().filter(|fact| fact.metadata.correlation_id == flow_id).collect();
        facts.sort_by_key(|fact| fact.stream_sequence);
        let entries = first_occurrences(facts);
        let started_at = entries.first()?.0.metadata.time;
        let told = tell(&entries, started_at);
        let flow = told.iter().find_map(|fact| flows.iter().find(|flow| flow.entry == fact.fact()));
        let (expected, ended_with) = flow.map(|flow| progress::of(flow, &told, now)).unwrap_or_default();
        Some(Self {
            flow_id,
            kind: flow.map(|flow| flow.name.clone()),
            state: state::of(flow, &told, &expected, &ended_with, now),
            finished: !ended_with.is_empty() && expected.is_empty(),
            duration_ms: told.iter().map(|fact| fact.delay_ms).max().unwrap_or_default(),
            anomalies: anomalies(&told, &ended_with),
            started_at,
            ended_with,
            expected,
            facts: told,
        })
    }

    /// Whether a fact of this name, `<domain>.<fact>`, is in it.
    pub fn has(&self, fact: &str) -> bool {
        self.facts.iter().any(|told| told.fact() == fact)
    }
}

/// A first occurrence with the places of its duplicates and of its conflicts.
type Entry = (StoredFact, Vec<u64>, Vec<u64>);

fn first_occurrences(facts: Vec<StoredFact>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut by_id: HashMap<Uuid, usize> = HashMap::new();
    for fact in facts {
        match by_id.get(&fact.metadata.id) {
            None => {
                by_id.insert(fact.metadata.id, entries.len());
                entries.push((fact, Vec::new(), Vec::new()));
            }
            Some(at) => {
                let (first, duplicates, conflicts) = &mut entries[*at];
                let copies = if first.fingerprint == fact.fingerprint { duplicates } else { conflicts };
                copies.push(fact.stream_sequence);
            }
        }
    }
    entries
}

fn tell(entries: &[Entry], started_at: Timestamp) -> Vec<TimelineFact> {
    let by_id: HashMap<Uuid, &StoredFact> = entries.iter().map(|(fact, ..)| (fact.metadata.id, fact)).collect();
    let tell_one = |(fact, duplicates, conflicts): &Entry| {
        let metadata = &fact.metadata;
        TimelineFact {
            id: metadata.id,
            event_type: metadata.event_type.to_string(),
            service: fact.service().to_owned(),
            speaker: fact.speaker().to_owned(),
            key: metadata.key.clone(),
            time: metadata.time,
            delay_ms: metadata.time.unix_millis() - started_at.unix_millis(),
            stream_sequence: fact.stream_sequence,
            stored_at: fact.stored_at,
            key_sequence: metadata.sequence,
            caused_by: metadata.causation_id,
            because_of: metadata.causation_id.and_then(|cause| by_id.get(&cause)).map(|cause| cause.fact()),
            depth: depth(fact, &by_id),
            phrase: phrase(&fact.data),
            data: fact.data.clone(),
            duplicates: duplicates.clone(),
            conflicts: conflicts.clone(),
        }
    };
    entries.iter().map(tell_one).collect()
}

/// Steps along the causes, as far as they are known. A ring of causes, which nobody of ours makes, ends the walk.
fn depth(fact: &StoredFact, by_id: &HashMap<Uuid, &StoredFact>) -> usize {
    let causes = std::iter::successors(Some(fact), |fact| by_id.get(&fact.metadata.causation_id?).copied());
    causes.skip(1).take(by_id.len()).count()
}

fn anomalies(facts: &[TimelineFact], ended_with: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    if ended_with.len() > 1 {
        let names: Vec<String> = ended_with.iter().map(|fact| spoken(fact)).collect();
        found.push(format!("it ended in more than one way: {}", names.join(", ")));
    }
    for fact in facts {
        let name = spoken(fact.fact());
        for place in &fact.conflicts {
            found.push(format!("{name} says something else at {place} than at {}, under one id", fact.stream_sequence));
        }
        if let (Some(cause), None) = (fact.caused_by, &fact.because_of) {
            found.push(format!("the cause of {name}, {cause}, is not in the stream"));
        }
    }
    found.extend(holes(facts));
    found
}

/// Holes and repeats in what each service says: its facts about one key are numbered without a gap.
fn holes(facts: &[TimelineFact]) -> Vec<String> {
    let mut by_service: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for fact in facts.iter().filter(|fact| fact.key_sequence > 0) {
        by_service.entry(&fact.service).or_default().push(fact.key_sequence);
    }
    let mut found = Vec::new();
    for (service, mut numbers) in by_service {
        numbers.sort_unstable();
        let last = numbers.last().copied().unwrap_or_default();
        found.extend(
            (1..=last)
                .filter(|number| !numbers.contains(number))
                .map(|number| format!("fact number {number} of {service} is not in the stream, number {last} is")),
        );
        found.extend(
            numbers
                .windows(2)
                .filter(|pair| pair[0] == pair[1])
                .map(|pair| format!("{service} gave the number {} to two facts", pair[0])),
        );
    }
    found
}
