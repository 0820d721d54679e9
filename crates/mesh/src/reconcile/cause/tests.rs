use time::OffsetDateTime;

use super::*;

const CREATED: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

fn at(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::UNIX_EPOCH + time::Duration::seconds(seconds)
}

fn look(last_sequence: i64) -> Look {
    Look { created: CREATED, first_sequence: 1, last_sequence, max_age: None }
}

/// A comparison from second 100 to second 110, of a stream that ended at 50; it is second 130.
fn compared() -> State {
    State {
        requested_at: Some(at(90)),
        stream_created: Some(CREATED),
        last_sequence: Some(50),
        started_at: Some(at(100)),
        finished_at: Some(at(110)),
        now: at(130),
        ..State::never(at(130))
    }
}

const QUIET: Moment = Moment {
    has_compared: true,
    has_reconnected: false,
    pause: None,
    again_after: None,
    every: Duration::from_secs(300),
};

#[test]
fn nothing_is_due_while_nothing_has_happened() {
    assert_eq!(due(&compared(), look(50), QUIET), None);
    assert_eq!(due(&compared(), look(51), QUIET), None);
}

#[test]
fn each_sign_of_a_loss_is_a_cause() {
    let replaced = Look { created: at(1), ..look(60) };
    let asked = State { requested_at: Some(at(101)), ..compared() };
    let new_here = Moment { has_compared: false, ..QUIET };
    let reconnected = Moment { has_reconnected: true, ..QUIET };
    let cases = [
        (due(&compared(), look(49), QUIET), Cause::SequenceFell),
        (due(&compared(), replaced, QUIET), Cause::StreamReplaced),
        (due(&asked, look(50), QUIET), Cause::Request),
        (due(&compared(), look(50), new_here), Cause::Start),
        (due(&compared(), look(50), reconnected), Cause::Reconnect),
    ];
    for (found, expected) in cases {
        assert_eq!(found, Some(expected));
        assert!(expected.is_suspicious(), "{expected:?}");
    }
}

#[test]
fn the_schedule_counts_from_the_end_of_the_last_comparison() {
    let late = State { now: at(410), ..compared() };
    assert_eq!(due(&late, look(50), QUIET), Some(Cause::Schedule));
    let early = State { now: at(409), ..compared() };
    assert_eq!(due(&early, look(50), QUIET), None);
    assert!(!Cause::Schedule.is_suspicious());
}

#[test]
fn what_was_put_back_is_looked_at_again_and_holds_no_other_cause_up() {
    let again = Moment { again_after: Some(Duration::from_secs(20)), ..QUIET };
    assert_eq!(due(&compared(), look(50), again), Some(Cause::Again));
    let early = State { now: at(129), ..compared() };
    assert_eq!(due(&early, look(50), again), None);
    assert_eq!(due(&early, look(49), again), Some(Cause::SequenceFell));
}

#[test]
fn a_comparison_that_failed_is_repeated_after_a_pause_whatever_the_cause() {
    let failed = Moment { has_compared: false, pause: Some(Duration::from_secs(21)), ..QUIET };
    let asked = State { requested_at: Some(at(111)), ..compared() };
    assert_eq!(due(&asked, look(49), failed), None);
    let later = State { now: at(131), ..asked };
    assert_eq!(due(&later, look(49), failed), Some(Cause::Request));
    let scheduled = Moment { pause: Some(Duration::from_secs(20)), ..QUIET };
    assert_eq!(due(&compared(), look(50), scheduled), Some(Cause::Again));
}
