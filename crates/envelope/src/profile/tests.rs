//! The profile against hostile bodies, and against `serde_json` as the second opinion on what JSON is.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn broken(body: impl AsRef<[u8]>) -> (Violation, usize) {
    let body = body.as_ref();
    match check(body) {
        Err(error) => (error.violation, error.offset),
        Ok(()) => panic!("accepted: {}", String::from_utf8_lossy(body)),
    }
}

#[test]
fn ordinary_bodies_pass() {
    for body in [
        "{}",
        " \t\r\n{ } \n",
        r#"{"a":1,"A":2,"b":[],"c":{},"d":[1,[2],{"e":[null,true,false]}]}"#,
        r#"{"a":[0,-0,-1,0.5,-0.5e-3,1E5,1e+5,9007199254740991,-9007199254740991,1e300]}"#,
        r#"{"text":"\" \\ \/ \b \f \n \r \t \u00e9 \ud83d\ude00 😀 é  "}"#,
        r#"{"":1," ":2,"a.b":3,"null":"null"}"#,
        "{\"\u{1}\u{7f}\":1}".replace('\u{1}', "\\u0001").as_str(),
    ] {
        assert_eq!(check(body.as_bytes()), Ok(()), "{body}");
    }
}

#[test]
fn a_byte_order_mark_is_named() {
    assert_eq!(broken("\u{feff}{}"), (Violation::Bom, 0));
    assert_eq!(broken(b"\xff\xfe{\0}\0"), (Violation::Bom, 0));
    assert_eq!(broken(b"\xfe\xff\0{\0}"), (Violation::Bom, 0));
    // Elsewhere it is a character like any other.
    assert_eq!(check("{\"a\":\"\u{feff}\"}".as_bytes()), Ok(()));
}

#[test]
fn every_byte_is_utf_8() {
    for (tail, at) in [
        (&b"\xff\"}"[..], 6),
        (b"ok\xc0\xa0\"}", 8),       // overlong
        (b"\xed\xa0\x80\"}", 6),     // a surrogate, encoded
        (b"\xf4\x90\x80\x80\"}", 6), // beyond U+10FFFF
        (b"cut\xe2\x82", 9),
    ] {
        let body = [&b"{\"x\":\""[..], tail].concat();
        assert_eq!(broken(&body), (Violation::InvalidUtf8, at));
    }
}

#[test]
fn nul_is_refused_raw_and_escaped() {
    assert_eq!(broken("{\"a\":\"x\0\"}"), (Violation::Nul, 7));
    assert_eq!(broken(r#"{"a":"x\u0000"}"#), (Violation::Nul, 7));
    assert_eq!(broken(r#"{"\u0000":1}"#), (Violation::Nul, 2));
    // An escaped backslash before `u0000` is five harmless characters.
    assert_eq!(check(br#"{"a":"\\u0000"}"#), Ok(()));
}

#[test]
fn half_a_surrogate_pair_is_refused() {
    for (body, at) in [
        (r#"{"a":"\ud800"}"#, 6),
        (r#"{"a":"\udc00"}"#, 6),
        (r#"{"a":"\ud83dx"}"#, 6),
        (r#"{"a":"\ud83d\u0041"}"#, 6),
        (r#"{"a":"\ud83d\ud83d"}"#, 6),
        (r#"{"a":"\ude00\ud83d"}"#, 6),
        (r#"{"a":"\ud83d\\ude00"}"#, 6),
        (r#"{"\ud800":1}"#, 2),
        (r#"{"ignored":{"deep":["ok \ud83d\ude00 \udead"]}}"#, 37),
    ] {
        assert_eq!(broken(body), (Violation::LoneSurrogate, at), "{body}");
    }
}

#[test]
fn a_member_is_named_once() {
    let twice = |name: &str| Violation::DuplicateKey(name.to_owned());
    assert_eq!(broken(r#"{"a":1,"a":1}"#), (twice("a"), 7));
    assert_eq!(broken(r#"{"x":[{"b":1, "b":2}]}"#), (twice("b"), 14));
    // The same name in another spelling is the same name.
    assert_eq!(broken(r#"{"a":1,"\u0061":2}"#), (twice("a"), 7));
    assert_eq!(broken("{\"é\":1,\"\\u00e9\":2}"), (twice("é"), 8));
    assert_eq!(check(br#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}"#), Ok(()));
}

fn nested(levels: usize) -> String {
    // The top-level object is the first level.
    format!("{{\"ignored\":{}1{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1))
}

#[test]
fn nesting_is_bounded() {
    assert_eq!(check(nested(32).as_bytes()), Ok(()));
    assert_eq!(broken(nested(33)), (Violation::TooDeep, "{\"ignored\":".len() + 31));
    let objects = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    assert_eq!(check(objects(32).as_bytes()), Ok(()));
    assert_eq!(broken(objects(33)).0, Violation::TooDeep);
    // Wide is not deep.
    assert_eq!(check(format!("{{\"a\":[{}[]]}}", "[],".repeat(10_000)).as_bytes()), Ok(()));
}

/// Deep nesting in a member that no type knows: the process is alive afterwards, whichever rule catches it. The thread's
/// stack is far too small for one frame a level.
#[test]
fn no_nesting_overflows_the_stack() {
    let scanned = std::thread::Builder::new().stack_size(64 * 1024).spawn(|| {
        let deep = nested(100_000);
        assert!(matches!(broken(&deep).0, Violation::TooLarge(_)));
        assert_eq!(broken(nested(30_000)).0, Violation::TooDeep);
        // And the scanner by itself, without the bound on the size.
        scan::Scanner::new(&deep).run().map_err(|error| error.violation)
    });
    let result = scanned.expect("a thread").join().expect("it did not overflow");
    assert_eq!(result, Err(Violation::TooDeep));
}

#[test]
fn numbers_stay_where_doubles_are_exact() {
    for literal in [
        "9007199254740992", // 2^53
        "9007199254740993", // 2^53 + 1
        "-9007199254740992",
        "9223372036854775808",
        "18446744073709551616",
        "100000000000000000000000000000",
        "1e400",
        "-1e400",
        "1.0e309",
    ] {
        assert_eq!(broken(format!("{{\"n\":{literal}}}")), (Violation::NumberRange, 5), "{literal}");
    }
}

#[test]
fn one_object_at_the_top() {
    for (body, at) in
        [("", 0), ("  ", 2), ("[]", 0), ("1", 0), ("null", 0), ("\"{}\"", 0), ("{}{}", 2), ("{} x", 3), ("{},", 2)]
    {
        assert_eq!(broken(body), (Violation::NotAnObject, at), "{body:?}");
    }
}

#[test]
fn what_is_not_json_is_malformed() {
    for body in [
        "{",
        "{]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":1 \"b\":2}",
        "{a:1}",
        "{'a':1}",
        "{\"a\":[1,]}",
        "{\"a\":[,1]}",
        "{\"a\":[1}",
        "{\"a\":01}",
        "{\"a\":-}",
        "{\"a\":+1}",
        "{\"a\":.5}",
        "{\"a\":1.}",
        "{\"a\":1e}",
        "{\"a\":1e+}",
        "{\"a\":0x10}",
        "{\"a\":NaN}",
        "{\"a\":Infinity}",
        "{\"a\":tru}",
        "{\"a\":truex}",
        "{\"a\":\"x}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"\\u+123\"}",
        "{\"a\":\"\\",
        "{\"a\":1}}",
        "{/* c */\"a\":1}",
        "{\"a\":1,,\"b\":2}",
        "{1:2}",
        "{\"a\":1:2}",
        "{\u{a0}\"a\":1}",
    ] {
        let found = broken(body).0;
        let trailing = body == "{\"a\":1}}";
        assert!(matches!(found, Violation::MalformedJson(_)) || trailing, "{body}: {found:?}");
    }
}

#[test]
fn size_comes_first() {
    let body = |len: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(len - 8));
    assert_eq!(check(body(BODY_BYTES_MAX).as_bytes()), Ok(()));
    assert_eq!(broken(body(BODY_BYTES_MAX + 1)), (Violation::TooLarge(BODY_BYTES_MAX + 1), BODY_BYTES_MAX));
    assert_eq!(broken(vec![0xff; BODY_BYTES_MAX + 1]).0, Violation::TooLarge(BODY_BYTES_MAX + 1));
}

/// Reasons are in tables and dashboards: each is its own word, and says what was wrong and where.
#[test]
fn errors_explain_themselves() {
    let error = |body: &[u8]| check(body).expect_err("broken");
    assert_eq!(error(b"\xef\xbb\xbf{}").to_string(), "byte order mark at byte 0");
    assert_eq!(error(br#"{"a":1,"a":2}"#).to_string(), "second member named \"a\" at byte 7");
    assert_eq!(error(br#"{"a":1e400}"#).to_string(), "number out of range at byte 5");
    let reasons: std::collections::BTreeSet<_> = [
        &b"\xef\xbb\xbf{}"[..],
        b"{\"a\":\"\xff\"}",
        b"{",
        b"[]",
        br#"{"a":1,"a":2}"#,
        br#"{"a":"\u0000"}"#,
        br#"{"a":"\ud800"}"#,
        br#"{"a":1e400}"#,
        &[b' '; 70_000],
        nested(33).as_bytes(),
    ]
    .iter()
    .map(|body| error(body).reason())
    .collect();
    assert_eq!(reasons.len(), 10, "{reasons:?}");
}

/// JSON values within the profile, built independently of the scanner.
fn value() -> impl Strategy<Value = Value> {
    let text = "[^\u{0}]{0,8}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(8, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(text, inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_serde_writes_within_the_profile_passes(value in value()) {
        let body = serde_json::json!({ "value": value });
        prop_assert_eq!(check(body.to_string().as_bytes()), Ok(()));
        prop_assert_eq!(check(serde_json::to_string_pretty(&body).expect("JSON").as_bytes()), Ok(()));
    }

    /// One byte changed: what still passes is JSON for `serde_json` too, and what is malformed is none for it either.
    #[test]
    fn the_grammar_is_that_of_json(value in value(), at: prop::sample::Index, byte in "[ -~]") {
        let mut body = serde_json::json!({ "value": value }).to_string().into_bytes();
        let at = at.index(body.len());
        body[at] = byte.as_bytes()[0];
        let parsed = serde_json::from_slice::<Value>(&body);
        match check(&body).map_err(|error| error.violation) {
            Ok(()) => prop_assert!(parsed.is_ok_and(|value| value.is_object())),
            Err(Violation::MalformedJson(_)) => prop_assert!(parsed.is_err(), "{}", String::from_utf8_lossy(&body)),
            Err(_) => {}
        }
    }

    #[test]
    fn no_bytes_are_fatal(body in proptest::collection::vec(any::<u8>(), 0..64), text in "[{}\\[\\]\",:0-9eE.+\\\\ud-]{0,40}") {
        let _ = check(&body);
        if check(text.as_bytes()).is_ok() {
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
        }
    }
}
