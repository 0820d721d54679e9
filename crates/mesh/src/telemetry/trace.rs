//! W3C trace context in and out of spans, so that one order is one trace across all services.
//!
//! The context travels in the outbox row and in the headers of each fact. It does so whether or not spans are exported:
//! a service without an exporter must not cut the trace of its neighbours.

use envelope::TraceContext;
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

const TRACEPARENT: &str = envelope::headers::TRACEPARENT;
const TRACESTATE: &str = envelope::headers::TRACESTATE;

/// The context of the span that is entered here; none outside of spans or when nothing keeps trace ids.
#[must_use]
pub fn current_context() -> Option<TraceContext> {
    context_of(&Span::current())
}

/// The context of `span`. Afterwards its parent is fixed.
#[must_use]
pub fn context_of(span: &Span) -> Option<TraceContext> {
    let mut carrier = Carrier::default();
    TraceContextPropagator::new().inject_context(&span.context(), &mut carrier);
    let tracestate = carrier.tracestate.filter(|state| !state.is_empty());
    Some(TraceContext { traceparent: carrier.traceparent?, tracestate })
}

/// Makes `span` a child of a span in another process. Call it before the span is entered. A context that is not
/// well-formed is ignored: tracing never stops work.
pub fn set_parent(span: &Span, parent: &TraceContext) {
    if !parent.is_valid() {
        return;
    }
    let carrier = Carrier { traceparent: Some(parent.traceparent.clone()), tracestate: parent.tracestate.clone() };
    // On an empty base: the context of the thread may be one in which spans are suppressed, and would suppress this one.
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier);
    if let Err(error) = span.set_parent(context) {
        tracing::trace!(%error, "the span keeps its local parent");
    }
}

/// The two headers of a trace context.
#[derive(Debug, Default)]
struct Carrier {
    traceparent: Option<String>,
    tracestate: Option<String>,
}

impl Injector for Carrier {
    fn set(&mut self, key: &str, value: String) {
        match key {
            TRACEPARENT => self.traceparent = Some(value),
            TRACESTATE => self.tracestate = Some(value),
            _ => {}
        }
    }
}

impl Extractor for Carrier {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            TRACEPARENT => self.traceparent.as_deref(),
            TRACESTATE => self.tracestate.as_deref(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACEPARENT, TRACESTATE]
    }
}

#[cfg(test)]
mod tests;
