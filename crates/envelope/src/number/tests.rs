//! Integers by value, whatever their spelling.

use proptest::prelude::*;

use super::*;

#[test]
fn integers_by_value() {
    for (literal, value) in [
        ("0", Some(0)),
        ("-0", Some(0)),
        ("-0.0e7", Some(0)),
        ("0e99999999999999999999", Some(0)),
        ("1.0", Some(1)),
        ("1e3", Some(1_000)),
        ("1E+3", Some(1_000)),
        ("-12.50e1", Some(-125)),
        ("100e-2", Some(1)),
        ("0.00001e5", Some(1)),
        ("9007199254740991.0", Some(INTEGER_MAX)),
        ("-9007199254740991.0", Some(-INTEGER_MAX)),
        ("9007199254740992.0", None), // 2^53
        ("9007199254740993.0", None), // a double rounds it to 2^53
        ("9.007199254740993e15", None),
        ("9007199254740990.6", None), // a double rounds it to an integer
        ("0.1", None),
        ("1e-1", None),
        ("100e-3", None),
        ("1e300", None),
        ("1e99999999999999999999", None),
        ("1e-99999999999999999999", None),
    ] {
        assert_eq!(integral(literal), value, "{literal}");
    }
}

#[test]
fn only_number_literals_are_rewritten() {
    let text = r#"{"1.0":"1e3 \" 2.0 \\","a":[1.0,-1e3,2.5,true,null,1e1],"b":{"c":7.0}}"#;
    let plain = r#"{"1.0":"1e3 \" 2.0 \\","a":[1,-1000,2.5,true,null,10],"b":{"c":7}}"#;
    assert_eq!(plain_integers(text), plain);
    assert_eq!(plain_integers(plain), plain);
}

proptest! {
    /// Any decimal notation of an integer is that integer: the point moved by `shift`, the exponent moved back.
    #[test]
    fn moving_the_point_changes_nothing(value in -INTEGER_MAX..=INTEGER_MAX, shift in 0_usize..20, zeros in 0_usize..5) {
        let digits = format!("{:0>width$}", value.unsigned_abs(), width = shift + 1);
        let (whole, fraction) = digits.split_at(digits.len() - shift);
        let sign = if value < 0 { "-" } else { "" };
        let literal = format!("{sign}{whole}.{fraction}{}e{shift}", "0".repeat(zeros + 1));
        prop_assert_eq!(integral(&literal), Some(value), "{}", literal);
    }
}
