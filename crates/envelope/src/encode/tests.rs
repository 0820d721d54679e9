//! What may not leave a publisher.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::{BODY_BYTES_MAX, INTEGER_MAX, Violation};

#[derive(Serialize, Deserialize)]
struct Noted {
    value: serde_json::Value,
}

impl Event for Noted {
    const DOMAIN: &'static str = "notes";
    const NAME: &'static str = "noted";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 1;

    fn key(&self) -> String {
        "note-1".to_owned()
    }
}

fn encoded(value: serde_json::Value) -> Result<Vec<u8>, EncodeError> {
    encode(&Noted { value })
}

fn violation(value: serde_json::Value) -> Violation {
    match encoded(value) {
        Err(EncodeError::Profile(error)) => error.violation,
        other => panic!("expected a broken rule, got {other:?}"),
    }
}

#[test]
fn the_body_is_the_bare_fact() {
    assert_eq!(encoded(json!({"b": 1, "a": ["x"]})), Ok(br#"{"value":{"a":["x"],"b":1}}"#.to_vec()));
}

#[test]
fn a_null_is_not_published() {
    assert_eq!(encoded(json!(null)), Err(EncodeError::Null(9)));
    assert_eq!(encoded(json!({"a": [null]})), Err(EncodeError::Null(15)));
    assert!(encoded(json!("null")).is_ok());
}

#[test]
fn the_profile_is_checked_before_anything_is_stored() {
    assert_eq!(violation(json!("a\0b")), Violation::Nul);
    assert_eq!(violation(json!(INTEGER_MAX + 1)), Violation::NumberRange);
    assert!(encoded(json!(INTEGER_MAX)).is_ok());
    assert!(encoded(json!(-INTEGER_MAX)).is_ok());
    let deep = (0..32).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(violation(deep), Violation::TooDeep);
}

#[test]
fn the_size_is_bounded() {
    let room = BODY_BYTES_MAX - br#"{"value":""}"#.len();
    assert!(encoded(json!("x".repeat(room))).is_ok());
    assert_eq!(violation(json!("x".repeat(room + 1))), Violation::TooLarge(BODY_BYTES_MAX + 1));
}
