//! Which letters an operation takes, and why not the others. Pure.

use std::collections::{BTreeMap, HashMap, HashSet};

/// What the plan rests on, per letter.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) id: i64,
    pub(super) subscriber: String,
    pub(super) key: String,
    pub(super) state: String,
    pub(super) reason: String,
    pub(super) attempts: i32,
    /// It agrees with what was asked for.
    pub(super) picked: bool,
    /// The inbox has a row for it.
    pub(super) remembered: bool,
    /// That row says that the delivery was settled, not kept.
    pub(super) settled: bool,
}

/// The set and what is not in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// By id, in the order of the work.
    pub(super) members: Vec<i64>,
    pub(super) included: usize,
    pub(super) discarded: usize,
    pub(super) already_settled: usize,
    pub(super) too_old: usize,
    pub(super) unknown_subscribers: BTreeMap<String, usize>,
    pub(super) blocked: usize,
}

/// How far the walk along a key is.
#[derive(Debug, Clone, Copy, Default)]
struct Walk {
    /// A letter of the key was asked for.
    is_touched: bool,
    /// A letter of the key stays where it is.
    is_blocked: bool,
}

impl Known {
    fn is_discarded(&self) -> bool {
        self.state == "discarded"
    }
}

impl Plan {
    /// Everything that was asked for, with what is before it in its key and what waits behind it. `rows` are in the order of
    /// the stream.
    pub(super) fn redrive(rows: &[Known], subscribers: &HashSet<&str>) -> Self {
        let mut last_picked: HashMap<(&str, &str), usize> = HashMap::new();
        for (index, row) in rows.iter().enumerate().filter(|(_, row)| row.picked) {
            last_picked.insert((&row.subscriber, &row.key), index);
        }
        let mut plan = Self::default();
        let mut walks: HashMap<(&str, &str), Walk> = HashMap::new();
        for (index, row) in rows.iter().enumerate() {
            let key = (row.subscriber.as_str(), row.key.as_str());
            let walk = walks.entry(key).or_default();
            let is_before = !row.is_discarded() && last_picked.get(&key).is_some_and(|last| index < *last);
            let is_behind = !row.is_discarded() && row.reason == "behind" && walk.is_touched;
            walk.is_touched |= row.picked;
            if row.picked || is_before || is_behind {
                plan.weigh(row, walk, subscribers);
            } else {
                walk.is_blocked |= !row.is_discarded();
            }
        }
        plan
    }

    fn weigh(&mut self, row: &Known, walk: &mut Walk, subscribers: &HashSet<&str>) {
        if walk.is_blocked {
            self.blocked += 1;
        } else if !subscribers.contains(row.subscriber.as_str()) {
            *self.unknown_subscribers.entry(row.subscriber.clone()).or_default() += 1;
            walk.is_blocked = !row.is_discarded();
        } else if !row.remembered {
            self.too_old += 1;
            walk.is_blocked = !row.is_discarded();
        } else {
            self.already_settled += usize::from(row.settled);
            self.included += usize::from(!row.picked);
            self.discarded += usize::from(row.is_discarded());
            self.members.push(row.id);
        }
    }

    /// What was asked for and is not discarded yet, and nothing else.
    pub(super) fn discard(rows: &[Known]) -> Self {
        let mut plan = Self::default();
        for row in rows.iter().filter(|row| row.picked) {
            if row.is_discarded() {
                plan.already_settled += 1;
            } else {
                plan.members.push(row.id);
            }
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(id: i64, key: &str, reason: &str) -> Known {
        let state = if reason == "behind" { "parked" } else { "dead" };
        Known {
            id,
            subscriber: "charge".to_owned(),
            key: key.to_owned(),
            state: state.to_owned(),
            reason: reason.to_owned(),
            attempts: 1,
            picked: false,
            remembered: true,
            settled: false,
        }
    }

    fn picked(row: Known) -> Known {
        Known { picked: true, ..row }
    }

    fn redrive(rows: &[Known]) -> Plan {
        Plan::redrive(rows, &HashSet::from(["charge"]))
    }

    #[test]
    fn what_waits_behind_goes_with_its_head_and_the_head_with_what_waits_behind() {
        let rows = [picked(letter(1, "a", "rejected")), letter(2, "b", "rejected"), letter(3, "a", "behind")];
        assert_eq!(redrive(&rows), Plan { members: vec![1, 3], included: 1, ..Plan::default() });
        let rows = [letter(1, "a", "rejected"), picked(letter(3, "a", "behind")), letter(4, "a", "behind")];
        assert_eq!(redrive(&rows), Plan { members: vec![1, 3, 4], included: 2, ..Plan::default() });
    }

    #[test]
    fn a_later_letter_that_failed_by_itself_is_not_taken_unasked_and_blocks_what_is_behind_it() {
        let rows = [picked(letter(1, "a", "rejected")), letter(2, "a", "rejected"), letter(3, "a", "behind")];
        assert_eq!(redrive(&rows), Plan { members: vec![1], blocked: 1, ..Plan::default() });
    }

    #[test]
    fn what_is_refused_blocks_its_key_and_no_other() {
        let old = Known { remembered: false, ..picked(letter(1, "a", "rejected")) };
        let renamed = Known { subscriber: "bill".to_owned(), ..picked(letter(2, "a", "rejected")) };
        let rows = [old, renamed, letter(3, "a", "behind"), picked(letter(4, "b", "rejected"))];
        let plan = redrive(&rows);
        assert_eq!((plan.members, plan.too_old, plan.blocked), (vec![4], 1, 1));
        assert_eq!(plan.unknown_subscribers, BTreeMap::from([("bill".to_owned(), 1)]));
    }

    #[test]
    fn a_discarded_letter_is_redriven_when_it_is_named_and_blocks_nobody() {
        let discarded = |row: Known| Known { state: "discarded".to_owned(), ..row };
        let rows = [picked(discarded(letter(1, "a", "rejected"))), picked(letter(2, "a", "rejected"))];
        assert_eq!(redrive(&rows), Plan { members: vec![1, 2], discarded: 1, ..Plan::default() });
        let old = Known { remembered: false, ..rows[0].clone() };
        assert_eq!(redrive(&[old, rows[1].clone()]), Plan { members: vec![2], too_old: 1, ..Plan::default() });
    }

    #[test]
    fn a_discard_takes_what_was_asked_for_and_nothing_else() {
        let done = Known { state: "discarded".to_owned(), ..picked(letter(3, "a", "rejected")) };
        let rows = [picked(letter(1, "a", "rejected")), letter(2, "a", "behind"), done];
        assert_eq!(Plan::discard(&rows), Plan { members: vec![1], already_settled: 1, ..Plan::default() });
    }
}
