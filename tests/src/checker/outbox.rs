//! What was committed is in the stream, and nothing else is.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::stream::Facts;
use super::{Check, Evidence, MeshTables, SentRow, Stored};

pub(super) fn check(evidence: &Evidence, facts: &Facts<'_>) -> Check {
    let mut check = Check::new("outbox");
    let mut contents: BTreeMap<Uuid, &Stored> = BTreeMap::new();
    for stored in &facts.all {
        let Some(id) = stored.id() else {
            check.violated(format!("message {} has no id", stored.sequence));
            continue;
        };
        let first = contents.entry(id).or_insert(stored);
        check.ensure(first.content() == stored.content(), || {
            format!("fact {id} says one thing in message {} and another in {}", first.sequence, stored.sequence)
        });
    }
    for (service, tables) in &evidence.mesh {
        sent(&mut check, service, tables, &evidence.stream, &contents);
        let own = facts.first.iter().filter(|fact| fact.service() == service.as_str());
        let uncommitted =
            own.filter_map(|fact| fact.id()).filter(|id| !tables.sent.iter().any(|row| row.event_id == *id));
        for id in uncommitted {
            check.violated(format!("fact {id} is in the stream and {service} does not know that it was sent"));
        }
    }
    check
}

/// Every acknowledged row is in the stream, where the stream said, with the content that was committed.
fn sent(check: &mut Check, service: &str, tables: &MeshTables, stream: &[Stored], contents: &BTreeMap<Uuid, &Stored>) {
    for id in &tables.unsent {
        check.violated(format!("{service} has not sent {id}"));
    }
    let places: BTreeMap<u64, &Stored> = stream.iter().map(|stored| (stored.sequence, stored)).collect();
    let mut known: BTreeMap<Uuid, &SentRow> = BTreeMap::new();
    for row in &tables.sent {
        check.item();
        let id = row.event_id;
        if known.insert(id, row).is_some() {
            check.violated(format!("{service} has sent two rows with the id {id}"));
        }
        let Some(stored) = contents.get(&id) else {
            check.violated(format!("{} {id} of {service} was acknowledged and is not in the stream", row.event_type));
            continue;
        };
        let committed = (row.event_type.as_str(), row.key.as_str(), row.payload.as_slice());
        check.ensure(stored.content() == committed && stored.key_version() == Some(row.key_version), || {
            format!("the stream holds another content for {id} than {service} committed")
        });
        check.ensure(stored.service() == service, || format!("{id} was sent by {service} as {}", stored.service()));
        let place = u64::try_from(row.stream_sequence).ok().and_then(|place| places.get(&place));
        check.ensure(place.is_some_and(|stored| stored.id() == Some(id)), || {
            format!("{id} was acknowledged as message {} and that is another one", row.stream_sequence)
        });
    }
}
