//! The encoding of header values, against the wording of the CloudEvents bindings.

use proptest::prelude::*;

use super::*;

/// "Euro € 😀" is the example of the HTTP binding.
#[test]
fn the_example_of_the_specification() {
    assert_eq!(encode("Euro € 😀"), "Euro%20%E2%82%AC%20%F0%9F%98%80");
    assert_eq!(decode("Euro%20%E2%82%AC%20%F0%9F%98%80").as_deref(), Ok("Euro € 😀"));
}

#[test]
fn readers_accept_what_the_specification_lets_others_write() {
    for (raw, value) in [
        ("%e2%82%ac", "€"),                // lower-case digits
        ("%61bc", "abc"),                  // needless encoding
        ("\"a b\"", "a b"),                // quoted string
        (r#""a \"b\" \\""#, r#"a "b" \"#), // its escapes
        ("\"a%20b\"", "a b"),              // quoting is undone first, then the encoding
        ("  padded\t", "padded"),          // outer white space is not part of a value
        ("a b", "a b"),                    // libraries that do not encode
        ("€", "€"),
        ("%2541", "%41"), // once, not twice
        ("\"", "\""),
        ("", ""),
    ] {
        assert_eq!(decode(raw).as_deref(), Ok(value), "{raw:?}");
    }
}

#[test]
fn readers_refuse_what_cannot_be_meant() {
    for (raw, why) in [
        ("%C0%A0", DecodeValueError::Utf8), // overlong, the example of the specification
        ("%ff", DecodeValueError::Utf8),
        ("%ED%A0%80", DecodeValueError::Utf8), // a surrogate
        ("%", DecodeValueError::Escape),
        ("100%", DecodeValueError::Escape),
        ("%4", DecodeValueError::Escape),
        ("%zz", DecodeValueError::Escape),
        ("%+4", DecodeValueError::Escape),
        ("%€", DecodeValueError::Escape),
        ("a%00b", DecodeValueError::Control),
        ("a%0D%0Ace-id: 1", DecodeValueError::Control),
        ("a\u{0}b", DecodeValueError::Control),
        ("a\u{7f}", DecodeValueError::Control),
        ("a\u{85}", DecodeValueError::Control),
    ] {
        assert_eq!(decode(raw), Err(why), "{raw:?}");
    }
}

/// The rule that our values follow is exactly the set on which both directions change nothing.
#[test]
fn plain_is_exactly_what_encoding_leaves_alone() {
    for code in 0..=0x2ff_u32 {
        let value = char::from_u32(code).expect("below the surrogates").to_string();
        assert_eq!(is_identity(&value), encode(&value) == value, "U+{code:04X}");
        if is_identity(&value) {
            assert_eq!(decode(&value).as_deref(), Ok(value.as_str()));
        }
    }
}

proptest! {
    #[test]
    fn decoding_undoes_encoding(value in "\\PC{0,40}") {
        let encoded = encode(&value);
        prop_assert!(is_identity(&encoded.replace('%', "")));
        prop_assert_eq!(decode(&encoded), Ok(value));
    }

    #[test]
    fn no_input_is_fatal(raw in "[%0-9a-fA-F\"\\\\é\\x00 ]{0,20}") {
        let _ = decode(&raw);
    }
}
