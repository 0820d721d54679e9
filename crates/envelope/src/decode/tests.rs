//! One message to one verdict.

use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::{Lift, Subject, Violation, headers};

/// Major 3 of a fact that began with a float of euros and then learned cents.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct PriceSet {
    sku: String,
    minor: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

fn name_the_sku(mut body: Value) -> Result<Value, String> {
    let article = body.as_object_mut().and_then(|members| members.remove("article")).ok_or("no article")?;
    body["sku"] = article;
    Ok(body)
}

fn count_in_cents(mut body: Value) -> Result<Value, String> {
    let euros = body["euros"].as_i64().ok_or("euros is no whole number")?;
    body["minor"] = json!(euros * 100);
    Ok(body)
}

impl Event for PriceSet {
    const DOMAIN: &'static str = "catalog";
    const NAME: &'static str = "price_set";
    const MAJOR: u16 = 3;
    const REVISION: u16 = 1;
    const LIFTS: &'static [(u16, Lift)] = &[(2, count_in_cents), (1, name_the_sku)];

    fn key(&self) -> String {
        self.sku.clone()
    }
}

fn message(event_type: &str, body: impl AsRef<[u8]>) -> RawMessage {
    let event_type: EventType = event_type.parse().expect("a type");
    let metadata = Metadata {
        id: Uuid::from_u128(7),
        source: "urn:mesh:catalog".into(),
        time: "2026-01-31T09:30:00.123Z".parse().expect("an instant"),
        key: "foobar".into(),
        revision: 1,
        correlation_id: Uuid::from_u128(8),
        causation_id: None,
        sequence: 1,
        emitter: "catalog/set-price@1".into(),
        hops: 0,
        trace: None,
        occurrence_id: None,
        extensions: Vec::new(),
        event_type: event_type.clone(),
    };
    RawMessage {
        subject: Subject::new(&event_type, "foobar").expect("a subject").as_str().to_owned(),
        headers: metadata.to_headers().expect("headers"),
        body: body.as_ref().to_vec(),
    }
}

fn body_of(event_type: &str, body: impl AsRef<[u8]>) -> Result<PriceSet, DecodeError> {
    decode::<PriceSet>(&message(event_type, body)).map(|(_, event)| event)
}

fn price(minor: i64) -> PriceSet {
    PriceSet { sku: "A-1".into(), minor, tags: Vec::new(), note: None }
}

#[test]
fn a_current_fact_is_read_with_its_metadata() {
    let raw = message("catalog.price_set.v3", r#"{"sku":"A-1","minor":1999}"#);
    let (metadata, event) = decode::<PriceSet>(&raw).expect("a fact");
    assert_eq!(event, price(1999));
    assert_eq!((metadata.id, metadata.sequence), (Uuid::from_u128(7), 1));
    assert_eq!(peek(&raw), Ok(metadata));
}

#[test]
fn readers_are_lenient_where_publishers_are_strict() {
    for body in [
        r#"{"sku":"A-1","minor":1999,"from_the_future":{"deep":[1.5,{"x":null}]}}"#,
        r#"{"sku":"A-1","minor":1999.0}"#,
        r#"{"sku":"A-1","minor":1.999e3}"#,
        r#"{"sku":"A-1","minor":199900e-2,"note":null,"tags":null}"#,
        "\n{ \"minor\" : 1999, \"sku\" : \"\\u0041-1\" }\n",
    ] {
        assert_eq!(body_of("catalog.price_set.v3", body), Ok(price(1999)), "{body}");
    }
    assert_eq!(body_of("catalog.price_set.v3", r#"{"sku":"A-1","minor":-0}"#), Ok(price(0)));
    let largest = body_of("catalog.price_set.v3", r#"{"sku":"A-1","minor":9007199254740991.0}"#);
    assert_eq!(largest, Ok(price(9_007_199_254_740_991)));
}

#[test]
fn a_body_of_another_shape_is_bad() {
    for body in [
        "{}",
        r#"{"sku":"A-1"}"#,
        r#"{"sku":"A-1","minor":null}"#,
        r#"{"sku":"A-1","minor":"1999"}"#,
        r#"{"sku":"A-1","minor":19.99}"#,
        r#"{"sku":"A-1","minor":9007199254740993.0}"#,
        r#"{"sku":1,"minor":1999}"#,
        r#"{"sku":"A-1","minor":1999,"tags":[1]}"#,
    ] {
        let error = body_of("catalog.price_set.v3", body).expect_err(body);
        assert_eq!(error.reason(), "bad_body", "{body}");
    }
}

#[test]
fn older_majors_are_lifted_step_by_step() {
    let future = r#"{"sku":"A-1","euros":20,"later":true}"#;
    assert_eq!(body_of("catalog.price_set.v2", future), Ok(price(2_000)));
    assert_eq!(body_of("catalog.price_set.v1", r#"{"article":"A-1","euros":20}"#), Ok(price(2_000)));
    // Spelling and nulls are settled before a lift sees the body.
    assert_eq!(body_of("catalog.price_set.v1", r#"{"article":"A-1","euros":2e1,"note":null}"#), Ok(price(2_000)));
    let failed = |from, why: &str| Err(DecodeError::LiftFailed { from, why: why.into() });
    assert_eq!(body_of("catalog.price_set.v1", r#"{"euros":20}"#), failed(1, "no article"));
    assert_eq!(
        body_of("catalog.price_set.v2", r#"{"sku":"A-1","euros":19.99}"#),
        failed(2, "euros is no whole number")
    );
    // Before the lifts of a later build, this one had an end.
    assert_eq!(body_of("catalog.price_set.v2", r#"{"euros":20}"#).map_err(|e| e.reason()), Err("bad_body"));
}

/// The same fact with a gap in its lifts.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Gapped {}

impl Event for Gapped {
    const DOMAIN: &'static str = "catalog";
    const NAME: &'static str = "price_set";
    const MAJOR: u16 = 3;
    const REVISION: u16 = 1;
    const LIFTS: &'static [(u16, Lift)] = &[(1, name_the_sku)];

    fn key(&self) -> String {
        "foobar".to_owned()
    }
}

#[test]
fn a_gap_in_the_lifts_is_a_reason_to_park() {
    let raw = message("catalog.price_set.v1", r#"{"article":"A-1"}"#);
    assert_eq!(decode::<Gapped>(&raw).map(|(_, event)| event), Err(DecodeError::NoLift { from: 2 }));
}

#[test]
fn a_newer_major_waits_whatever_its_body_is() {
    let error = body_of("catalog.price_set.v4", "not even JSON").expect_err("newer");
    assert_eq!(error, DecodeError::NewerMajor { got: 4, known: 3 });
    assert!(error.is_newer());
    assert!(!DecodeError::NoLift { from: 1 }.is_newer());
}

#[test]
fn another_fact_is_not_decoded_as_this_one() {
    let error = body_of("catalog.price_cut.v3", r#"{"sku":"A-1","minor":1999}"#).expect_err("another fact");
    assert_eq!(error.reason(), "unexpected_type");
    assert_eq!(body_of("orders.price_set.v3", "{}").map_err(|e| e.reason()), Err("unexpected_type"));
}

#[test]
fn the_subject_must_agree_with_the_headers() {
    let good = message("catalog.price_set.v3", r#"{"sku":"A-1","minor":1999}"#);
    assert_eq!(good.subject, "evt.catalog.price_set.v3.40");
    for subject in [
        "evt.catalog.price_set.v2.40",
        "evt.catalog.price_cut.v3.40",
        "evt.orders.price_set.v3.40",
        "evt.catalog.price_set.v3.41",
        "evt.catalog.price_set.v3",
        "mesh.ops.catalog",
        "",
    ] {
        let raw = RawMessage { subject: subject.into(), ..good.clone() };
        assert_eq!(peek(&raw).map_err(|e| e.reason()), Err("subject_mismatch"), "{subject}");
        assert_eq!(decode::<PriceSet>(&raw).map(|_| ()).map_err(|e| e.reason()), Err("subject_mismatch"));
    }
}

/// A key that foreign publishers encode is hashed as it reads, not as it is spelled.
#[test]
fn the_bucket_is_that_of_the_decoded_key() {
    let mut raw = message("catalog.price_set.v3", "{}");
    for (name, value) in &mut raw.headers {
        if name == headers::CE_SUBJECT || name == headers::CE_PARTITIONKEY {
            *value = "%66oobar".into();
        }
    }
    assert_eq!(peek(&raw).map(|metadata| metadata.key), Ok("foobar".into()));
}

#[test]
fn headers_are_checked_before_the_body_and_the_profile_before_the_shape() {
    let headless = RawMessage { headers: Vec::new(), ..message("catalog.price_set.v3", "{") };
    assert_eq!(decode::<PriceSet>(&headless).map(|_| ()).map_err(|e| e.reason()), Err("malformed_headers"));
    // Each of these reads well into the struct, because the bad part is in a member that it does not know.
    for (ignored, reason) in [
        (&b"\"\xff\""[..], "invalid_utf8"),
        (br#""\ud800""#, "lone_surrogate"),
        (br#""\u0000""#, "nul"),
        (b"9007199254740993", "number_range"),
        (br#"{"a":1,"a":2}"#, "duplicate_key"),
        (b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "too_deep"),
    ] {
        let body = [&br#"{"sku":"A-1","minor":1999,"x":"#[..], ignored, b"}"].concat();
        assert_eq!(body_of("catalog.price_set.v3", &body).map_err(|e| e.reason()), Err(reason));
    }
    let bom = body_of("catalog.price_set.v3", b"\xef\xbb\xbf{}").expect_err("a mark");
    assert!(matches!(&bom, DecodeError::Profile(error) if error.violation == Violation::Bom), "{bom}");
}
