//! Integers in, integers out, nothing silently wrong in between.

use serde_json::json;

use super::*;

fn euros(minor: i64) -> Money {
    Money::new(minor, Currency::parse("EUR").expect("a known code")).expect("in range")
}

/// ISO 4217, list one: the exponents that code most often gets wrong.
#[test]
fn the_scale_is_that_of_the_currency() {
    for (code, scale) in [
        ("EUR", 2),
        ("USD", 2),
        ("GBP", 2),
        ("CHF", 2),
        ("JPY", 0),
        ("KRW", 0),
        ("CLP", 0),
        ("ISK", 0),
        ("HUF", 2),
        ("KWD", 3),
        ("BHD", 3),
        ("TND", 3),
        ("XAF", 0),
        ("MRU", 2),
        ("UGX", 0),
        ("VES", 2),
        ("XCG", 2),
        ("ZWG", 2),
    ] {
        let currency = Currency::parse(code).expect("a known code");
        assert_eq!(Money::new(1, currency).map(|amount| amount.scale), Ok(scale), "{code}");
    }
}

#[test]
fn makers_are_held_to_the_table_and_readers_are_not() {
    for code in ["ANG", "XTS", "ZZZ"] {
        let currency = Currency::well_formed(code).expect("three capital letters");
        assert_eq!(Currency::parse(code), Err(MoneyError::UnknownCurrency(currency)));
        assert_eq!(Money::new(1, currency), Err(MoneyError::UnknownCurrency(currency)));
        // A log of the time when the code was in use, or of a publisher with a newer table.
        let wire = json!({"minor": 1999, "currency": code, "scale": 2});
        let read: Money = serde_json::from_value(wire.clone()).expect("readable");
        assert_eq!((read.minor, read.currency, read.scale), (1999, currency, 2));
        assert_eq!(serde_json::to_value(read).expect("JSON"), wire);
        assert_eq!(read.checked_add(read).map(|sum| sum.minor), Ok(3998));
    }
    for code in ["", "EU", "EURO", "eur", "E R", "€UR", "12E", "EUR\n"] {
        assert!(matches!(Currency::parse(code), Err(MoneyError::MalformedCurrency(_))), "{code:?}");
        assert!(serde_json::from_value::<Currency>(json!(code)).is_err(), "{code:?}");
    }
}

#[test]
fn arithmetic_is_exact_or_refused() {
    assert_eq!(euros(1999).checked_mul(3), Ok(euros(5997)));
    assert_eq!(euros(1999).checked_add(euros(-2000)), Ok(euros(-1)));
    assert_eq!(euros(1999).checked_mul(0), Ok(euros(0)));
    assert_eq!(euros(INTEGER_MAX).checked_add(euros(1)), Err(MoneyError::OutOfRange));
    assert_eq!(euros(-INTEGER_MAX).checked_add(euros(-1)), Err(MoneyError::OutOfRange));
    // Beyond i64 as well: 2^53 times 2^32.
    assert_eq!(euros(INTEGER_MAX).checked_mul(u32::MAX), Err(MoneyError::OutOfRange));
    assert_eq!(euros(INTEGER_MAX).checked_mul(1), Ok(euros(INTEGER_MAX)));
}

#[test]
fn only_like_amounts_are_added() {
    let yen = Money::new(5, Currency::parse("JPY").expect("a known code")).expect("in range");
    assert!(matches!(euros(5).checked_add(yen), Err(MoneyError::Mismatch { .. })));
    let tenths: Money = serde_json::from_value(json!({"minor": 5, "currency": "EUR", "scale": 3})).expect("readable");
    assert!(matches!(euros(5).checked_add(tenths), Err(MoneyError::Mismatch { left_scale: 2, right_scale: 3, .. })));
}

#[test]
fn amounts_out_of_range_are_neither_made_nor_read() {
    let eur = Currency::parse("EUR").expect("a known code");
    for minor in [INTEGER_MAX + 1, -INTEGER_MAX - 1, i64::MAX, i64::MIN] {
        assert_eq!(Money::new(minor, eur), Err(MoneyError::OutOfRange));
        assert!(serde_json::from_value::<Money>(json!({"minor": minor, "currency": "EUR", "scale": 2})).is_err());
    }
    for wire in [
        json!({"minor": 1, "currency": "EUR", "scale": 10}),
        json!({"minor": 1, "currency": "EUR", "scale": -1}),
        json!({"minor": 1.5, "currency": "EUR", "scale": 2}),
        json!({"minor": "1", "currency": "EUR", "scale": 2}),
        json!({"minor": 1, "currency": "EUR"}),
        json!({"minor": 1, "scale": 2}),
    ] {
        assert!(serde_json::from_value::<Money>(wire.clone()).is_err(), "{wire}");
    }
}
