//! The headers of a fact as a schema.

use envelope::headers;
use serde_json::{Map, Value, json};

const UUID: &str = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
const TYPE: &str = "^[a-z][a-z0-9_]{0,31}\\.[a-z][a-z0-9_]{0,31}\\.v[1-9][0-9]{0,2}$";
const TIME: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$";
const KEY: &str = "^[!#$&-~]{1,128}$";
const EMITTER: &str = "^[!#$&-~]+$";
const SOURCE: &str = "^urn:mesh:[a-z][a-z0-9_]{0,31}$";
const DATASCHEMA: &str = "^urn:mesh:schema:[a-z][a-z0-9_.]*:[1-9][0-9]*:[1-9][0-9]*$";
const SEQUENCE: &str = "^[0-9]{20}$";
const TRACEPARENT: &str = "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$";

/// Whether a publisher must write the header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Always,
    Sometimes,
}

use Need::{Always, Sometimes};

/// Name, need, pattern, meaning.
const ROWS: [(&str, Need, &str, &str); 21] = [
    (headers::CE_SPECVERSION, Always, "^1\\.0$", "Version of CloudEvents."),
    (headers::CE_ID, Always, UUID, "Identity of the fact, the same however often it is published. Never nil."),
    (headers::CE_SOURCE, Always, SOURCE, "The service that says it."),
    (headers::CE_TYPE, Always, TYPE, "The fact and the major of its meaning; agrees with the subject."),
    (headers::CE_TIME, Always, TIME, "When it happened, by the transaction that stored it. Never order by it."),
    (headers::CE_SUBJECT, Always, KEY, "What the fact is about: the key."),
    (headers::CE_DATACONTENTTYPE, Always, "^application/json$", "Media type of the body."),
    (headers::CONTENT_TYPE, Always, "^application/json$", "The same, for CloudEvents libraries that look here."),
    (
        headers::CE_DATASCHEMA,
        Always,
        DATASCHEMA,
        "The schema, major and revision that the publisher knew; informational.",
    ),
    (headers::CE_CORRELATIONID, Always, UUID, "The flow: the order id on every fact of an order."),
    (headers::CE_CAUSATIONID, Sometimes, UUID, "ce-id of the fact that was reacted to; absent on entry facts."),
    (headers::CE_PARTITIONKEY, Always, KEY, "The key whose bucket is in the subject; equal to ce-subject."),
    (
        headers::CE_SEQUENCE,
        Always,
        SEQUENCE,
        "Version of the key in its source: 1, 2, 3 without a hole, padded with zeros.",
    ),
    (headers::CE_EMITTER, Always, EMITTER, "<service>/<subscriber or endpoint>@<build>."),
    (
        headers::MESH_HOPS,
        Always,
        "^[0-9]{1,5}$",
        "Facts between the root of the flow and this one, 0 on entry facts; at most 32.",
    ),
    (headers::CE_TRACEPARENT, Sometimes, TRACEPARENT, "W3C trace context of the transaction that stored the fact."),
    (headers::CE_TRACESTATE, Sometimes, ".", "Vendor part of ce-traceparent."),
    (headers::CE_OCCURRENCEID, Sometimes, UUID, "Shared by two majors of one occurrence while both are published."),
    (headers::NATS_MSG_ID, Always, UUID, "Equal to ce-id. This spelling exactly: the server does not see another."),
    (headers::NATS_EXPECTED_STREAM, Always, "^EVT$", "The stream that must store it. This spelling exactly."),
    (
        headers::MESH_REPLAY,
        Sometimes,
        ".",
        "Id of the run on messages that are replayed from a capture; absent on live ones.",
    ),
];

/// The schema of a fact's headers. Other headers may be there and are left alone.
pub(super) fn schema() -> Value {
    let properties: Map<String, Value> = ROWS
        .iter()
        .map(|(name, _, pattern, meaning)| {
            let property = json!({ "type": "string", "pattern": pattern, "description": meaning });
            ((*name).to_owned(), property)
        })
        .collect();
    json!({ "type": "object", "properties": properties, "required": always() })
}

/// The headers that every fact carries.
pub fn always() -> Vec<&'static str> {
    ROWS.iter().filter(|row| row.1 == Always).map(|row| row.0).collect()
}
