//! Same content, same fingerprint; other content, another one.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn print(body: &str) -> [u8; 32] {
    let event_type = "orders.order_created.v1".parse().expect("a type");
    fingerprint(&event_type, "key-1", body.as_bytes())
}

#[test]
fn spelling_does_not_count() {
    let plain = print(r#"{"a":1,"b":{"c":"é","d":[1,2]}}"#);
    for same in [
        r#"{"b":{"d":[1,2],"c":"é"},"a":1}"#,
        "{ \"a\" : 1 ,\r\n\t\"b\":{\"c\":\"\\u00e9\",\"d\":[1,2]}}",
        r#"{"a":1.0,"b":{"c":"é","d":[10e-1,2]}}"#,
        r#"{"a":1,"n":null,"b":{"c":"é","d":[1,2],"n":null}}"#,
    ] {
        assert_eq!(print(same), plain, "{same}");
    }
}

#[test]
fn content_counts() {
    let bodies = [
        r#"{"a":1}"#,
        r#"{"a":2}"#,
        r#"{"a":"1"}"#,
        r#"{"a":1.5}"#,
        r#"{"a":[1]}"#,
        r#"{"a":[1,null]}"#,
        r#"{"a":true}"#,
        r#"{"b":1}"#,
        "{}",
        "",
        "{",
        "[]",
        r#"{"a":1,"a":1}"#,
        r#"{"a":[2,1]}"#,
        r#"{"a":[1,2]}"#,
    ];
    for (at, a) in bodies.iter().enumerate() {
        for b in &bodies[at + 1..] {
            assert_ne!(print(a), print(b), "{a} and {b}");
        }
    }
}

#[test]
fn type_and_subject_count() {
    let of = |event_type: &str, subject| fingerprint(&event_type.parse().expect("a type"), subject, b"{}");
    let base = of("orders.order_created.v1", "key-1");
    assert_ne!(of("orders.order_created.v2", "key-1"), base);
    assert_ne!(of("orders.order_created.v1", "key-2"), base);
}

/// Computed independently:
///
/// ```python
/// import hashlib, struct
/// parts = [b'orders.order_created.v1', b'key-1', b'json', b'{"a":1,"b":[true,"x"]}']
/// print(hashlib.sha256(b''.join(struct.pack('>Q', len(p)) + p for p in parts)).hexdigest())
/// ```
#[test]
fn the_fingerprint_is_frozen() {
    let hex: String = print(r#"{"b":[true,"x"],"a":1}"#).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "debd105e748b8df45e18d4ae6eb70e61bd96f34dfe1d44fd5f0abd8ab11b2631");
}

proptest! {
    /// Any bytes have a fingerprint, and those without a canonical form are told apart by their bytes.
    #[test]
    fn any_bytes_have_one(body in proptest::collection::vec(any::<u8>(), 0..40)) {
        let event_type = EventType { domain: "a".into(), name: "b".into(), major: 1 };
        let print = fingerprint(&event_type, "k", &body);
        let mut other = body;
        other.push(b'!');
        prop_assert_ne!(fingerprint(&event_type, "k", &other), print);
    }

    #[test]
    fn pretty_printing_changes_nothing(a in -1000_i64..1000, text in "\\PC{0,12}", flag: bool) {
        let value = json!({"z": a, "text": text, "list": [a, flag, {"deep": text}]});
        prop_assert_eq!(print(&value.to_string()), print(&serde_json::to_string_pretty(&value).expect("JSON")));
    }
}
