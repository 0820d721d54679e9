//! Every declared subscriber has settled every fact that it hears exactly once; what was given up is what the run provoked.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::{Check, DeadLetter, Evidence, Expected, MeshTables};

pub(super) fn check(evidence: &Evidence, expected: &Expected) -> Check {
    let mut check = Check::new("settlement");
    // What says one thing on the subject of another is no fact of either.
    let sound = evidence.stream.iter().filter(|stored| stored.subject.starts_with(&format!("evt.{}.", stored.kind())));
    let facts: BTreeMap<Uuid, &str> = sound.filter_map(|stored| Some((stored.id()?, stored.kind()))).collect();
    let mut due: BTreeMap<&str, BTreeSet<(Uuid, &str)>> = BTreeMap::new();
    for reaction in &evidence.reactions {
        let heard = facts.iter().filter(|(_, kind)| reaction.hears.iter().any(|hears| hears == *kind));
        due.entry(&reaction.service).or_default().extend(heard.map(|(id, _)| (*id, reaction.subscriber.as_str())));
    }
    for (service, tables) in &evidence.mesh {
        settled(&mut check, service, tables, due.remove(service.as_str()).unwrap_or_default());
    }
    for service in due.keys() {
        check.violated(format!("{service} is in the catalogue and was not looked at"));
    }
    given_up(&mut check, evidence, expected);
    check
}

fn settled(check: &mut Check, service: &str, tables: &MeshTables, due: BTreeSet<(Uuid, &str)>) {
    let mut outcomes: BTreeMap<(Uuid, &str), usize> = due.into_iter().map(|delivery| (delivery, 0)).collect();
    let dead = tables.dead.iter().map(|(id, letter)| (*id, letter.subscriber.as_str(), true));
    let settled = tables.settled.iter().map(|(id, subscriber)| (*id, subscriber.as_str(), false));
    for (id, subscriber, is_dead) in settled.chain(dead) {
        match outcomes.get_mut(&(id, subscriber)) {
            Some(count) => *count += 1,
            // What cannot be read has no id of its own; the list of dead letters covers it.
            None => check.ensure(is_dead, || format!("{service}/{subscriber} settled {id}, which it does not hear")),
        }
    }
    for ((id, subscriber), count) in outcomes {
        check.item();
        check.ensure(count == 1, || format!("{service}/{subscriber} has {count} outcomes for {id}"));
    }
    let kept: BTreeSet<(Uuid, &str)> = tables.kept.iter().map(|(id, subscriber)| (*id, subscriber.as_str())).collect();
    let dead: BTreeSet<(Uuid, &str)> =
        tables.dead.iter().map(|(id, letter)| (*id, letter.subscriber.as_str())).collect();
    check.ensure(kept == dead, || format!("{service} has kept {kept:?} by its inbox and {dead:?} as dead letters"));
    for (id, subscriber) in &tables.unsettled {
        check.violated(format!("{service}/{subscriber} still counts attempts for {id}"));
    }
}

fn given_up(check: &mut Check, evidence: &Evidence, expected: &Expected) {
    let mut found: Vec<&DeadLetter> =
        evidence.mesh.values().flat_map(|tables| tables.dead.iter().map(|(_, letter)| letter)).collect();
    let mut wanted: Vec<&DeadLetter> = expected.dead_letters.iter().collect();
    found.sort();
    wanted.sort();
    check.ensure(found == wanted, || format!("dead letters are {found:?}, expected were {wanted:?}"));
}
