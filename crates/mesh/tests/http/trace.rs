//! One order is one trace, from the request on.

use std::sync::Arc;

use mesh::ServiceContext;
use mesh::clock::System;
use mesh::telemetry::{LogFormat, Telemetry};

use crate::shop::{Shop, TallyChanged};

/// The subscriber of the process: the other tests of this binary run under it as well, silent.
#[tokio::test]
async fn a_fact_carries_the_trace_of_the_request_that_caused_it() {
    let context = ServiceContext::new("shop", "1.2.3", Arc::new(System));
    let _telemetry = Telemetry::init(&context, LogFormat::Text, "off", None).unwrap();
    let shop = Shop::open().await;
    let traced = shop
        .add("/tallies/a", "k-1")
        .header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        .header("tracestate", "shop=1");
    assert_eq!(traced.send().await.unwrap().status(), 201);
    let facts = shop.bed.published::<TallyChanged>().await.unwrap();
    let trace = facts[0].0.trace.clone().unwrap();
    assert!(trace.traceparent.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"), "{trace:?}");
    assert!(!trace.traceparent.contains("00f067aa0ba902b7"), "the fact's parent is our own span");
    assert_eq!(trace.tracestate.as_deref(), Some("shop=1"));
}
