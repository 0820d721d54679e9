//! One spelling out, many in, one instant.

use proptest::prelude::*;
use time::macros::datetime;

use super::*;

#[test]
fn the_spelling_is_fixed() {
    for (instant, text) in [
        (datetime!(2026-01-31 09:30:00.123 UTC), "2026-01-31T09:30:00.123Z"),
        (datetime!(2026-01-31 09:30:00 UTC), "2026-01-31T09:30:00.000Z"),
        (datetime!(2026-01-31 09:30:00.123_999_999 UTC), "2026-01-31T09:30:00.123Z"),
        (datetime!(2026-01-31 09:30:00.007 +05:30), "2026-01-31T04:00:00.007Z"),
        (datetime!(1969-12-31 23:59:59.999_9 UTC), "1969-12-31T23:59:59.999Z"),
        (datetime!(0000-01-01 00:00 UTC), "0000-01-01T00:00:00.000Z"),
    ] {
        assert_eq!(Timestamp::from_offset(instant).to_string(), text);
        assert_eq!(text.parse::<Timestamp>().map(|at| at.to_string()), Ok(text.to_owned()));
    }
}

#[test]
fn instants_that_four_digits_of_a_year_cannot_say_become_the_bound() {
    let far = OffsetDateTime::from_unix_timestamp(-300_000_000_000).expect("in the range of the type");
    assert_eq!(Timestamp::from_offset(far).to_string(), "0000-01-01T00:00:00.000Z");
    let edge = datetime!(9999-12-31 23:59:59.999_999_999 -12:00);
    assert_eq!(Timestamp::from_offset(edge).to_string(), "9999-12-31T23:59:59.999Z");
}

#[test]
fn publishers_are_held_to_the_one_spelling() {
    for text in [
        "2026-01-31T09:30:00Z",
        "2026-01-31T09:30:00.12Z",
        "2026-01-31T09:30:00.1234Z",
        "2026-01-31T09:30:00.123+00:00",
        "2026-01-31T09:30:00.123",
        "2026-01-31 09:30:00.123Z",
        "2026-01-31t09:30:00.123z",
        "2026-02-30T09:30:00.123Z",
        "2026-01-31T24:00:00.000Z",
        " 2026-01-31T09:30:00.123Z",
        "2026-01-31T09:30:00.123Z[Europe/Berlin]",
        "",
    ] {
        assert!(text.parse::<Timestamp>().is_err(), "{text:?} parsed");
    }
}

#[test]
fn readers_take_any_offset_and_precision_but_no_missing_zone() {
    let instant = Timestamp::from_offset(datetime!(2026-01-31 09:30:00.120 UTC));
    for text in ["2026-01-31T09:30:00.12Z", "2026-01-31T10:30:00.120999999+01:00", "2026-01-31T09:30:00.120-00:00"] {
        assert_eq!(Timestamp::from_rfc3339(text), Ok(instant), "{text:?}");
    }
    for text in ["2026-01-31T09:30:00.12", "2026-01-31", "1769851800", "now"] {
        assert!(Timestamp::from_rfc3339(text).is_err(), "{text:?} parsed");
    }
}

proptest! {
    /// Through text, through JSON, and through a database that keeps microseconds.
    #[test]
    fn an_instant_stays_equal_to_itself(seconds in -60_000_000_000_i64..250_000_000_000, nanos in 0_i128..1_000_000_000) {
        let drawn = OffsetDateTime::from_unix_timestamp_nanos(i128::from(seconds) * 1_000_000_000 + nanos)
            .expect("within the years 0 to 9999");
        let instant = Timestamp::from_offset(drawn);
        prop_assert_eq!(instant.to_string().parse(), Ok(instant));
        let json = serde_json::to_string(&instant).expect("a string");
        prop_assert_eq!(serde_json::from_str::<Timestamp>(&json).expect("the same string"), instant);
        let micros = instant.as_offset().unix_timestamp_nanos() / 1_000 * 1_000;
        let stored = OffsetDateTime::from_unix_timestamp_nanos(micros).expect("in range");
        prop_assert_eq!(Timestamp::from_offset(stored), instant);
        prop_assert_eq!(i128::from(instant.unix_millis()), drawn.unix_timestamp_nanos().div_euclid(1_000_000));
    }
}
