use super::*;

const ME: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);

fn entry(state: State, attempt: u32, instance: Uuid) -> Entry {
    Entry { state, attempt, instance, history: Vec::new(), no_effect: None }
}

fn claimed(attempt: u32, instance: Uuid) -> Begin {
    Begin::Write(entry(State::Claimed, attempt, instance))
}

#[test]
fn a_first_delivery_is_begun_without_a_look() {
    for found in [None, Some(entry(State::Settled, 3, OTHER)), Some(entry(State::Claimed, 3, OTHER))] {
        assert_eq!(begin(found.as_ref(), Next::First, ME, true), Begin::Go(1));
    }
}

#[test]
fn every_entry_meets_every_redelivery() {
    use State::{Claimed, Failed, Kept, Settled};
    let go = Begin::Go;
    let write = |attempt| claimed(attempt, ME);
    // state, written by, what Count gives before and after the claim has lapsed, what Counted(3) gives likewise
    let table = [
        (None, ME, [write(2), write(2)], [go(3), go(3)]),
        (Some(Claimed), ME, [go(3), go(3)], [go(3), go(3)]),
        (Some(Claimed), OTHER, [Begin::Elsewhere, write(4)], [Begin::Elsewhere, write(4)]),
        (Some(Failed), ME, [write(4), write(4)], [go(3), go(3)]),
        (Some(Failed), OTHER, [write(4), write(4)], [write(4), write(4)]),
        (Some(Settled), ME, [go(3), go(3)], [go(3), go(3)]),
        (Some(Settled), OTHER, [go(3), go(3)], [go(3), go(3)]),
        (Some(Kept), ME, [go(3), go(3)], [go(3), go(3)]),
        (Some(Kept), OTHER, [go(3), go(3)], [go(3), go(3)]),
    ];
    for (state, instance, count, counted) in table {
        let found = state.map(|state| entry(state, 3, instance));
        for (next, expected) in [(Next::Count, count), (Next::Counted(3), counted)] {
            let got = [false, true].map(|lapsed| begin(found.as_ref(), next, ME, lapsed));
            assert_eq!(got, expected, "{state:?} by {instance} and {next:?}");
        }
    }
}

#[test]
fn only_a_claim_of_this_execution_lets_it_in() {
    use State::{Claimed, Failed, Kept, Settled};
    assert_eq!(claim(None, 1, ME), Claim::Write(entry(Claimed, 1, ME)));
    for (state, attempt, instance, expected) in [
        (Claimed, 2, ME, Claim::Ours),
        (Claimed, 1, ME, Claim::Recount),
        (Claimed, 2, OTHER, Claim::Recount),
        (Failed, 2, ME, Claim::Recount),
        (Settled, 2, ME, Claim::Duplicate),
        (Settled, 1, OTHER, Claim::Duplicate),
        (Kept, 9, OTHER, Claim::Duplicate),
    ] {
        let found = entry(state, attempt, instance);
        assert_eq!(claim(Some(&found), 2, ME), expected, "{found:?}");
    }
}

fn failure(attempt: u32, error: &str) -> FailedAttempt {
    FailedAttempt { attempt, at: "2026-01-01T00:00:00.000Z".parse().unwrap(), error: error.to_owned() }
}

#[test]
fn failures_are_counted_and_remembered_and_change_nothing_that_is_concluded() {
    let first = failed(Some(&entry(State::Claimed, 1, ME)), &failure(1, "one"), ME).unwrap();
    let second = failed(Some(&first), &failure(2, "two"), ME).unwrap();
    assert_eq!((second.state, second.attempt), (State::Failed, 2));
    assert_eq!(second.history, [failure(1, "one"), failure(2, "two")]);
    assert_eq!(failed(None, &failure(5, "x"), ME).unwrap().attempt, 5, "even if the claim was lost");
    for state in [State::Settled, State::Kept] {
        assert_eq!(failed(Some(&entry(state, 1, OTHER)), &failure(1, "late"), ME), None);
    }
}

#[test]
fn an_entry_stays_small_whatever_fails_however_often() {
    let mut found = entry(State::Claimed, 1, ME);
    for attempt in 1..=100 {
        found = failed(Some(&found), &failure(attempt, &"x".repeat(100_000)), ME).unwrap();
    }
    assert_eq!(found.attempt, 100, "all are counted");
    assert_eq!(found.history.last().map(|last| last.attempt), Some(100), "the newest are kept");
    assert!(serde_json::to_vec(&found).unwrap().len() < 100_000);
}
