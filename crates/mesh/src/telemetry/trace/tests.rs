use opentelemetry_sdk::Resource;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry;
use tracing_subscriber::util::SubscriberInitExt;

use super::*;
use crate::telemetry::{log, otlp};

/// Spans as in a service that exports none, for this thread.
fn traced() -> DefaultGuard {
    let provider = otlp::provider(None, Resource::builder_empty().build()).unwrap();
    registry().with(log::spans(&provider)).set_default()
}

fn parent() -> TraceContext {
    TraceContext {
        traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned(),
        tracestate: Some("shop=1".to_owned()),
    }
}

#[test]
fn a_span_continues_the_trace_of_its_cause() {
    let _traced = traced();
    let span = tracing::info_span!("deliver");
    set_parent(&span, &parent());
    let context = span.in_scope(current_context).unwrap();
    let parts: Vec<_> = context.traceparent.split('-').collect();
    assert_eq!(parts[1], "4bf92f3577b34da6a3ce929d0e0e4736", "the trace is the cause's");
    assert_ne!(parts[2], "00f067aa0ba902b7", "the span is its own");
    assert_eq!(parts[3], "01");
    assert_eq!(context.tracestate.as_deref(), Some("shop=1"));
    assert!(context.is_valid());
}

#[test]
fn a_span_without_a_cause_starts_a_trace_and_its_children_stay_in_it() {
    let _traced = traced();
    let root = tracing::info_span!("http_request");
    let _entered = root.enter();
    let outer = current_context().unwrap();
    let inner = tracing::info_span!("settle").in_scope(current_context).unwrap();
    assert_eq!(outer.traceparent[..35], inner.traceparent[..35]);
    assert_ne!(outer.traceparent, inner.traceparent);
}

#[test]
fn a_malformed_cause_is_ignored() {
    let _traced = traced();
    let span = tracing::info_span!("deliver");
    set_parent(&span, &TraceContext { traceparent: "00-0-0-00".to_owned(), tracestate: None });
    assert!(context_of(&span).unwrap().is_valid());
}

#[test]
fn outside_of_spans_there_is_no_context() {
    let _traced = traced();
    assert_eq!(current_context(), None);
}

#[test]
fn without_a_subscriber_there_is_no_context() {
    let span = tracing::info_span!("deliver");
    set_parent(&span, &parent());
    assert_eq!(span.in_scope(current_context), None);
}

#[tokio::test]
async fn a_task_of_an_instrumented_future_is_in_the_trace_of_the_cause() {
    use tracing::Instrument;
    use tracing_subscriber::{EnvFilter, Layer};

    let provider = otlp::provider(None, Resource::builder_empty().build()).unwrap();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::sink);
    let lines = lines.with_filter(EnvFilter::try_new("info").unwrap());
    let _traced = registry().with(lines).with(log::spans(&provider)).set_default();
    let span = tracing::info_span!("http_request");
    set_parent(&span, &parent());
    let nested = async {
        tokio::task::yield_now().await;
        tokio::spawn(async { current_context() }.in_current_span()).await.unwrap()
    };
    let context = nested.instrument(span.clone()).await;
    span.record("nothing", 1);
    assert_eq!(
        context.map(|context| context.traceparent[3..35].to_owned()),
        Some(parent().traceparent[3..35].to_owned())
    );
}
