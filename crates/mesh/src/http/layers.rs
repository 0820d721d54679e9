//! What happens around every request: its span and its metric, panics, and errors that are no problem details yet.

use std::any::Any;

use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use envelope::TraceContext;
use tokio::time::Instant;
use tracing::{Instrument, Span, field};

use super::{Problem, admin};
use crate::telemetry::{metrics, trace};

/// The outermost layer: one span and one measurement per request, and every error as a problem.
pub(super) async fn observe(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let operation = operation(&request);
    let path = request.uri().path().to_owned();
    let span = span(&request, &operation);
    let response = async { settle(next.run(request).await, path).await }.instrument(span.clone()).await;
    let status = response.status().as_u16();
    span.record("http.response.status_code", status);
    metrics::http_request(&operation, status, started.elapsed());
    response
}

/// The span of a request, in the trace that its client started. What probes ask every few seconds is in no trace.
fn span(request: &Request, operation: &str) -> Span {
    let path = request.uri().path();
    if admin::PATHS.contains(&path) {
        return Span::none();
    }
    let span = tracing::info_span!(
        "http_request",
        otel.name = operation,
        otel.kind = "server",
        http.request.method = %request.method(),
        url.path = path,
        http.response.status_code = field::Empty,
    );
    if let Some(parent) = trace_context(request.headers()) {
        trace::set_parent(&span, &parent);
    }
    span
}

/// Method and route, which are few; never the path, which has ids, nor a method that a client made up.
fn operation(request: &Request) -> String {
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str);
    let method = match *request.method() {
        Method::GET | Method::HEAD | Method::POST | Method::PUT | Method::PATCH | Method::DELETE | Method::OPTIONS => {
            request.method().as_str()
        }
        _ => "OTHER",
    };
    format!("{method} {route}")
}

fn trace_context(headers: &HeaderMap) -> Option<TraceContext> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
    Some(TraceContext {
        traceparent: text(envelope::headers::TRACEPARENT)?,
        tracestate: text(envelope::headers::TRACESTATE),
    })
}

/// Names the instance of a problem, logs its cause, and turns an error in plain text into a problem.
async fn settle(response: Response, path: String) -> Response {
    let problem = match response.extensions().get::<Problem>() {
        Some(problem) => problem.clone(),
        None if is_bare_error(&response) => return describe(response, path).await,
        None => return response,
    };
    match problem.cause() {
        Some(cause) if problem.status().is_server_error() => {
            tracing::error!(status = problem.status().as_u16(), error = %format_args!("{cause:#}"), "request failed");
        }
        _ => tracing::debug!(%problem, "request refused"),
    }
    problem.at(path).into_response()
}

/// An error that is not in a form that a program could read: the framework's own, or text.
fn is_bare_error(response: &Response) -> bool {
    let status = response.status();
    let json = |value: &header::HeaderValue| value.to_str().is_ok_and(|text| text.contains("json"));
    (status.is_client_error() || status.is_server_error())
        && !response.headers().get(header::CONTENT_TYPE).is_some_and(json)
}

/// Longest text of an error that is taken over, in bytes.
const DETAIL_BYTES_MAX: usize = 4096;

async fn describe(response: Response, path: String) -> Response {
    let (mut parts, body) = response.into_parts();
    let text = to_bytes(body, DETAIL_BYTES_MAX).await.unwrap_or_default();
    let (slug, fallback) = match parts.status {
        StatusCode::NOT_FOUND => ("not-found", "there is nothing at this path"),
        StatusCode::METHOD_NOT_ALLOWED => ("method-not-allowed", "this path does not take this method"),
        StatusCode::PAYLOAD_TOO_LARGE => ("too-large", "the body is too large"),
        status if status.is_client_error() => ("bad-request", "the request cannot be read"),
        _ => ("internal", "the request failed inside the service"),
    };
    let detail = if text.is_empty() { fallback.to_owned() } else { String::from_utf8_lossy(&text).into_owned() };
    let problem = Problem::new(parts.status, slug, detail).at(path).into_response();
    // Headers of the error stay (`Allow`), those of its body go.
    let (problem_parts, body) = problem.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(problem_parts.headers);
    Response::from_parts(parts, body)
}

/// What a panic in a handler answers.
pub(super) fn panicked(panic: Box<dyn Any + Send>) -> Response<Body> {
    Problem::panicked(panic).into_response()
}
