//! Headers out and in: golden dump, round trip, and everything that foreign publishers can do wrong.

mod hostile;

use proptest::{collection, option, prelude::*};

use super::*;

/// A fact with every header, as `orders` would say it.
pub(super) fn sample() -> Metadata {
    Metadata {
        id: Uuid::from_u128(0x0198d2f0_1c2b_8a4e_9f10_2233445566aa),
        source: "urn:mesh:orders".into(),
        event_type: "orders.order_cancelled.v1".parse().expect("a type"),
        time: "2026-01-31T09:30:00.123Z".parse().expect("an instant"),
        key: "0198d2f0-1c2b-7000-8000-0000000000aa".into(),
        revision: 1,
        correlation_id: Uuid::from_u128(0x0198d2f0_1c2b_7000_8000_0000000000aa),
        causation_id: Some(Uuid::from_u128(0x0198d2f0_1c2b_8a4e_9f10_2233445566bb)),
        sequence: 2,
        emitter: "orders/cancel-declined-order@0.1.0".into(),
        hops: 2,
        trace: Some(TraceContext {
            traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
            tracestate: Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE".into()),
        }),
        occurrence_id: Some(Uuid::from_u128(0x0198d2f0_1c2b_8a4e_9f10_2233445566cc)),
        extensions: vec![("ce-tenant".into(), "acme".into())],
    }
}

fn read(lines: &[(String, String)]) -> Result<Metadata, HeaderError> {
    Metadata::from_headers(lines.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// The wire, to the letter. A change here is a change for every reader in every language.
const GOLDEN: &str = "\
ce-specversion: 1.0
ce-id: 0198d2f0-1c2b-8a4e-9f10-2233445566aa
ce-source: urn:mesh:orders
ce-type: orders.order_cancelled.v1
ce-time: 2026-01-31T09:30:00.123Z
ce-subject: 0198d2f0-1c2b-7000-8000-0000000000aa
ce-datacontenttype: application/json
content-type: application/json
ce-dataschema: urn:mesh:schema:orders.order_cancelled:1:1
ce-correlationid: 0198d2f0-1c2b-7000-8000-0000000000aa
ce-partitionkey: 0198d2f0-1c2b-7000-8000-0000000000aa
ce-emitter: orders/cancel-declined-order@0.1.0
mesh-hops: 2
ce-causationid: 0198d2f0-1c2b-8a4e-9f10-2233445566bb
ce-sequence: 00000000000000000002
ce-occurrenceid: 0198d2f0-1c2b-8a4e-9f10-2233445566cc
ce-traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
ce-tracestate: rojo=00f067aa0ba902b7,congo=t61rcWkgMzE
ce-tenant: acme
";

#[test]
fn the_headers_are_these() {
    let dump: String =
        sample().to_headers().expect("headers").iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    assert_eq!(dump, GOLDEN);
}

/// NATS headers are `NATS/1.0` CRLF, lines of `name: value` CRLF, CRLF.
#[test]
fn the_size_is_what_goes_over_the_wire() {
    let lines = sample().to_headers().expect("headers");
    let wire = format!("NATS/1.0\r\n{}\r\n", GOLDEN.replace('\n', "\r\n"));
    let counted = headers::wire_bytes(lines.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    assert_eq!(counted, wire.len());
}

#[test]
fn what_is_not_there_has_no_header() {
    let bare = Metadata {
        causation_id: None,
        sequence: 0,
        trace: None,
        occurrence_id: None,
        extensions: Vec::new(),
        ..sample()
    };
    let lines = bare.to_headers().expect("headers");
    assert_eq!(lines.len(), 13, "the required ones: {lines:?}");
    assert_eq!(read(&lines), Ok(bare));
}

#[test]
fn values_that_need_encoding_are_not_published() {
    for bad in ["", "with space", "50%", "\"quoted\"", "straße", "line\nbreak", "nul\0"] {
        let refused = |metadata: Metadata| matches!(metadata.to_headers(), Err(HeaderError::NotPlain(_)));
        assert!(refused(Metadata { key: bad.into(), ..sample() }), "key {bad:?}");
        assert!(refused(Metadata { source: bad.into(), ..sample() }), "source {bad:?}");
        assert!(refused(Metadata { emitter: bad.into(), ..sample() }), "emitter {bad:?}");
    }
    let bad_type = EventType { domain: "orders".into(), name: "a.b".into(), major: 1 };
    assert!(matches!(Metadata { event_type: bad_type, ..sample() }.to_headers(), Err(HeaderError::Type(_))));
}

#[test]
fn extensions_cannot_forge_other_headers() {
    for (name, value) in [
        ("ce-id", "x"),
        ("ce-", "x"),
        ("tenant", "x"),
        ("ce-Tenant", "x"),
        ("ce-a b", "x"),
        ("ce-a:b", "x"),
        ("ce-a\r\nce-id", "x"),
        ("ce-tenant", ""),
        ("ce-tenant", "a\r\nce-id: b"),
        ("Nats-Msg-Id", "x"),
    ] {
        let metadata = Metadata { extensions: vec![(name.into(), value.into())], ..sample() };
        assert_eq!(metadata.to_headers(), Err(HeaderError::NotPlain(name.into())), "{name:?}");
    }
    let twice = vec![("ce-tenant".into(), "a".into()), ("ce-tenant".into(), "b".into())];
    let metadata = Metadata { extensions: twice, ..sample() };
    assert_eq!(metadata.to_headers(), Err(HeaderError::Contradiction("ce-tenant".into())));
}

#[test]
fn headers_leave_room_for_the_relay() {
    let filled = |len: usize| Metadata { extensions: vec![("ce-note".into(), "n".repeat(len))], ..sample() };
    let empty =
        headers::wire_bytes(GOLDEN.lines().filter_map(|line| line.split_once(": "))) - "ce-tenant: acme\r\n".len();
    let room = HEADERS_BYTES_MAX - HEADERS_RESERVED_BYTES - empty - "ce-note: \r\n".len();
    assert!(filled(room).to_headers().is_ok());
    assert_eq!(filled(room + 1).to_headers(), Err(HeaderError::TooLarge(3_073)));
}

/// A broken or bloated trace context costs the trace, never the fact.
#[test]
fn tracing_never_stops_a_fact() {
    let traced = |traceparent: &str, tracestate: &str| {
        let trace = TraceContext { traceparent: traceparent.into(), tracestate: Some(tracestate.into()) };
        let lines = Metadata { trace: Some(trace), ..sample() }.to_headers().expect("headers");
        lines.into_iter().filter(|(name, _)| name.starts_with("ce-trace")).count()
    };
    let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    assert_eq!(traced(good, "a=b"), 2);
    assert_eq!(traced(good, ""), 1);
    assert_eq!(traced(good, "a=b\r\nce-id: x"), 1);
    assert_eq!(traced(good, &"s".repeat(512)), 2);
    assert_eq!(traced(good, &"s".repeat(513)), 1);
    assert_eq!(traced("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what", "a=b"), 2);
    for bad in [
        "",
        "garbage",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
    ] {
        assert_eq!(traced(bad, "a=b"), 0, "{bad:?}");
    }
}

fn uuid() -> impl Strategy<Value = Uuid> {
    (1..u128::MAX).prop_map(Uuid::from_u128)
}

/// Any envelope that the mesh can mint; `foreign` is text that others made.
fn metadata(foreign: &'static str) -> impl Strategy<Value = Metadata> {
    let plain = "[!#$&-~]{1,40}";
    let event_type = ("[a-z][a-z0-9_]{0,31}", "[a-z][a-z0-9_]{0,31}", 1_u16..1000)
        .prop_map(|(domain, name, major)| EventType { domain, name, major });
    let instant = (-62_167_219_200_i64..253_402_300_800).prop_map(|seconds| {
        Timestamp::from_offset(time::OffsetDateTime::from_unix_timestamp(seconds).expect("years 0 to 9999"))
    });
    let trace = ("[0-9a-e]{2}-[1-9a-f]{32}-[1-9a-f]{16}-[0-9a-f]{2}", option::of(foreign))
        .prop_map(|(traceparent, tracestate)| TraceContext { traceparent, tracestate });
    let extensions = collection::btree_map("ce-x[a-z0-9]{1,10}", foreign, 0..3);
    (
        (uuid(), plain, event_type, instant, plain, any::<u16>()),
        (uuid(), option::of(uuid()), any::<u64>(), plain, any::<u16>()),
        (option::of(trace), option::of(uuid()), extensions),
    )
        .prop_map(|((id, source, event_type, time, key, revision), flow, (trace, occurrence_id, extensions))| {
            let (correlation_id, causation_id, sequence, emitter, hops) = flow;
            let extensions = extensions.into_iter().collect();
            Metadata {
                id,
                source,
                event_type,
                time,
                key,
                revision,
                correlation_id,
                causation_id,
                sequence,
                emitter,
                hops,
                trace,
                occurrence_id,
                extensions,
            }
        })
}

proptest! {
    #[test]
    fn what_is_written_is_read(written in metadata("[^\\p{C}]{1,20}"), seed: u64) {
        let mut lines = written.to_headers().expect("headers");
        prop_assert_eq!(read(&lines), Ok(written.clone()));
        // Order and case are the transport's business.
        let turn = usize::try_from(seed % 13).expect("small");
        lines.rotate_left(turn);
        for (at, (name, _)) in lines.iter_mut().enumerate() {
            if seed >> at & 1 == 1 {
                *name = name.to_ascii_uppercase();
            }
        }
        prop_assert_eq!(read(&lines), Ok(written));
    }

    /// The reason why readers that decode and readers that do not see the same: encoding is the identity on every value.
    #[test]
    fn every_emitted_value_is_its_own_encoding(minted in metadata("[!#$&-~]{1,20}")) {
        for (name, value) in minted.to_headers().expect("headers") {
            prop_assert_eq!(&percent::encode(&value), &value, "{}", name);
            prop_assert_eq!(percent::decode(&value), Ok(value), "{}", name);
        }
    }

    #[test]
    fn no_headers_are_fatal(lines in collection::vec(("(ce-[a-z]{2,13}|content-type|\\PC{0,8})", "\\PC{0,20}"), 0..20)) {
        let _ = read(&lines);
    }
}
