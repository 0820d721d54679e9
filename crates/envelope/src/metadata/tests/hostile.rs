//! Headers as others may send them.

use super::{super::*, read, sample};

fn lines() -> Vec<(String, String)> {
    sample().to_headers().expect("headers")
}

fn with(name: &str, value: &str) -> Vec<(String, String)> {
    let mut lines = lines();
    match lines.iter_mut().find(|(known, _)| known == name) {
        Some(line) => line.1 = value.to_owned(),
        None => lines.push((name.to_owned(), value.to_owned())),
    }
    lines
}

fn and(name: &str, value: &str) -> Vec<(String, String)> {
    let mut lines = lines();
    lines.push((name.to_owned(), value.to_owned()));
    lines
}

/// Removes each header in turn: it is missed, or its absence has the documented meaning.
#[test]
fn every_header_is_missed_or_has_a_default() {
    for name in headers::ENVELOPE {
        let mut rest = lines();
        rest.retain(|(known, _)| known != name);
        assert_eq!(rest.len(), lines().len() - 1, "{name} is written");
        let expected = match name {
            headers::CE_DATACONTENTTYPE | headers::CONTENT_TYPE | headers::CE_SUBJECT | headers::CE_PARTITIONKEY => {
                Ok(sample())
            }
            headers::CE_DATASCHEMA => Ok(Metadata { revision: 0, ..sample() }),
            headers::CE_CAUSATIONID => Ok(Metadata { causation_id: None, ..sample() }),
            headers::CE_SEQUENCE => Ok(Metadata { sequence: 0, ..sample() }),
            headers::CE_EMITTER => Ok(Metadata { emitter: String::new(), ..sample() }),
            headers::MESH_HOPS => Ok(Metadata { hops: 0, ..sample() }),
            headers::CE_OCCURRENCEID => Ok(Metadata { occurrence_id: None, ..sample() }),
            headers::CE_TRACEPARENT => Ok(Metadata { trace: None, ..sample() }),
            headers::CE_TRACESTATE => {
                let trace = sample().trace.map(|trace| TraceContext { tracestate: None, ..trace });
                Ok(Metadata { trace, ..sample() })
            }
            required => Err(HeaderError::Missing(required)),
        };
        assert_eq!(read(&rest), expected, "without {name}");
    }
}

/// An empty attribute is an absent one.
#[test]
fn an_empty_required_value_is_missing() {
    for name in [headers::CE_ID, headers::CE_SOURCE, headers::CE_TYPE, headers::CE_TIME, headers::CE_CORRELATIONID] {
        assert_eq!(read(&with(name, "")), Err(HeaderError::Missing(name)));
    }
}

#[test]
fn neither_subject_nor_partition_key_is_missing_the_key() {
    let mut rest = lines();
    rest.retain(|(name, _)| name != headers::CE_SUBJECT && name != headers::CE_PARTITIONKEY);
    assert_eq!(read(&rest), Err(HeaderError::Missing(headers::CE_PARTITIONKEY)));
}

#[test]
fn names_are_folded_and_contradictions_refused() {
    let id = sample().id.to_string();
    for same in
        [("Ce-Id", id.as_str()), ("CE-ID", &id), ("ce-id", &id), ("CE-ID", "%30198d2f0-1c2b-8a4e-9f10-2233445566aa")]
    {
        assert_eq!(read(&and(same.0, same.1)), Ok(sample()), "{same:?}");
    }
    let other = "0198d2f0-1c2b-8a4e-9f10-2233445566ff";
    for name in ["Ce-Id", "CE-ID", "ce-id"] {
        assert_eq!(read(&and(name, other)), Err(HeaderError::Contradiction("ce-id".into())), "{name}");
    }
    assert_eq!(read(&and("Mesh-Hops", "3")), Err(HeaderError::Contradiction("mesh-hops".into())));
    assert_eq!(read(&and("CE-Tenant", "other")), Err(HeaderError::Contradiction("ce-tenant".into())));
    assert_eq!(
        read(&with(headers::CE_PARTITIONKEY, "another-key")),
        Err(HeaderError::Contradiction("ce-partitionkey".into()))
    );
}

/// Everything outside the envelope is the transport's: not looked at, not even when it could not be decoded.
#[test]
fn other_headers_are_not_looked_at() {
    for (name, value) in
        [("Nats-Msg-Id", "x"), ("traceparent", "%zz"), ("mesh-replay", "run-7"), ("x-tenant", "a\0b"), ("", "")]
    {
        assert_eq!(read(&and(name, value)), Ok(sample()), "{name}");
    }
}

#[test]
fn a_schema_of_another_fact_is_a_contradiction_but_a_foreign_one_says_nothing() {
    let read_schema = |uri: &str| read(&with(headers::CE_DATASCHEMA, uri)).map(|metadata| metadata.revision);
    assert_eq!(read_schema("urn:mesh:schema:orders.order_cancelled:1:7"), Ok(7));
    assert_eq!(read_schema("https://schemas.example/order.json"), Ok(0));
    for uri in [
        "urn:mesh:schema:orders.order_created:1:1",
        "urn:mesh:schema:orders.order_cancelled:2:1",
        "urn:mesh:schema:orders.order_cancelled:1",
        "urn:mesh:schema:orders.order_cancelled:1:x",
        "urn:mesh:schema:orders.order_cancelled:1:70000",
    ] {
        assert_eq!(read_schema(uri), Err(HeaderError::Contradiction("ce-dataschema".into())), "{uri}");
    }
}

#[test]
fn ids_are_normalised_and_nil_is_refused() {
    for spelled in [
        "0198D2F0-1C2B-8A4E-9F10-2233445566AA",
        "{0198d2f0-1c2b-8a4e-9f10-2233445566aa}",
        "urn:uuid:0198d2f0-1c2b-8a4e-9f10-2233445566aa",
        "0198d2f01c2b8a4e9f102233445566aa",
    ] {
        assert_eq!(read(&with(headers::CE_ID, spelled)), Ok(sample()), "{spelled}");
    }
    for name in [headers::CE_ID, headers::CE_CORRELATIONID, headers::CE_CAUSATIONID, headers::CE_OCCURRENCEID] {
        for bad in ["00000000-0000-0000-0000-000000000000", "1", "null", "not-a-uuid"] {
            assert!(matches!(read(&with(name, bad)), Err(HeaderError::Invalid { .. })), "{name}: {bad}");
        }
    }
}

#[test]
fn only_binary_mode_json_of_version_1_is_spoken() {
    for media in ["application/json; charset=utf-8", "Application/JSON"] {
        assert_eq!(read(&with(headers::CONTENT_TYPE, media)), Ok(sample()), "{media}");
    }
    for media in ["application/cloudevents+json", "application/cloudevents", "Application/CloudEvents-batch+json; x=y"]
    {
        assert!(matches!(read(&with(headers::CONTENT_TYPE, media)), Err(HeaderError::StructuredMode(_))), "{media}");
    }
    for (name, value) in [
        (headers::CONTENT_TYPE, "text/plain"),
        (headers::CE_DATACONTENTTYPE, "application/xml"),
        (headers::CE_SPECVERSION, "0.3"),
        (headers::CE_SPECVERSION, "1.1"),
    ] {
        assert!(matches!(read(&with(name, value)), Err(HeaderError::Invalid { .. })), "{name}: {value}");
    }
}

#[test]
fn numbers_and_times_are_checked() {
    for (name, value) in [
        (headers::CE_SEQUENCE, "-1"),
        (headers::CE_SEQUENCE, "+1"),
        (headers::CE_SEQUENCE, "1.0"),
        (headers::CE_SEQUENCE, "18446744073709551616"),
        (headers::CE_SEQUENCE, "٣"),
        (headers::MESH_HOPS, "65536"),
        (headers::MESH_HOPS, "many"),
        (headers::CE_TIME, "2026-01-31 09:30:00"),
        (headers::CE_TIME, "1769851800"),
    ] {
        assert!(matches!(read(&with(name, value)), Err(HeaderError::Invalid { .. })), "{name}: {value}");
    }
    assert_eq!(read(&with(headers::CE_SEQUENCE, "2")), Ok(sample()));
    assert_eq!(read(&with(headers::CE_TIME, "2026-01-31T10:30:00.123456+01:00")), Ok(sample()));
}

#[test]
fn values_that_do_not_decode_are_refused_by_name() {
    for value in ["%C0%A0", "100%", "a%00", "a\u{1}"] {
        let error = read(&with("ce-tenant", value));
        assert!(
            matches!(&error, Err(HeaderError::Encoding { name, .. }) if name == "ce-tenant"),
            "{value:?}: {error:?}"
        );
    }
    // A long bad value is cut in the error, which ends up in tables and logs.
    let Err(HeaderError::Invalid { value, .. }) = read(&with(headers::CE_ID, &"x".repeat(5_000))) else {
        panic!("a long id is refused");
    };
    assert_eq!(value.len(), 80);
}
