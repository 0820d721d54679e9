use uuid::Uuid;

use super::*;

const CREATED: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

fn sent(stream_sequence: i64, stream_created: OffsetDateTime) -> Sent {
    Sent { event_id: Uuid::nil(), sent_at: CREATED, stream_created, stream_sequence, key_version: 1 }
}

#[test]
fn the_ends_of_the_stream_decide_without_a_question() {
    let look = Look { created: CREATED, first_sequence: 10, last_sequence: 20, max_age: None };
    let other = CREATED + time::Duration::SECOND;
    assert_eq!(judge(look, &sent(21, CREATED)), Some(false), "the stream has not come that far");
    assert_eq!(judge(look, &sent(9, CREATED)), Some(true), "expired, which is no loss");
    assert_eq!(judge(look, &sent(9, other)), Some(false), "the number of another stream");
    for sequence in [10, 20] {
        assert_eq!(judge(look, &sent(sequence, CREATED)), None);
        assert_eq!(judge(look, &sent(sequence, other)), None, "a stream that was restored under another date");
    }
}

#[test]
fn a_sample_is_taken_of_many_only() {
    assert_eq!([0, 1, 20_000, 39_999, 40_000, 1_000_000].map(one_of), [1, 1, 1, 1, 2, 50]);
}

#[test]
fn stretches_grow_where_little_was_sent_and_shrink_where_much_was() {
    let minute = Duration::from_secs(60);
    assert_eq!(next_length(minute, 0), 2 * minute);
    assert_eq!(next_length(minute, 5_000), minute);
    assert_eq!(next_length(minute, 50_000), minute / 2);
    assert_eq!(next_length(STRETCH_MIN, 50_000), STRETCH_MIN);
}
