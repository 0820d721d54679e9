//! What operators and their tools ask every service: is it alive, is it ready, what does it count, what does it offer.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::lifecycle::Readiness;
use crate::telemetry::metrics::Exposition;

/// What every service answers beside its own routes.
pub(super) const PATHS: [&str; 4] = ["/livez", "/readyz", "/metrics", "/openapi.json"];

/// The Prometheus text format.
const METRICS_MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the endpoints of a process answer from.
#[derive(Debug, Clone)]
pub(super) struct Admin {
    /// Readiness and draining.
    pub(super) readiness: Readiness,
    /// The metrics.
    pub(super) metrics: Exposition,
    /// The OpenAPI document of the service's own routes, if it has any.
    pub(super) openapi: Option<Value>,
}

impl Admin {
    pub(super) fn routes(self) -> Router {
        let [live_path, ready_path, metrics_path, openapi_path] = PATHS;
        let mut routes =
            Router::new().route(live_path, get(live)).route(ready_path, get(ready)).route(metrics_path, get(metrics));
        if self.openapi.is_some() {
            routes = routes.route(openapi_path, get(openapi));
        }
        routes.with_state(self)
    }
}

/// That this is answered is the answer: the runtime schedules. Nothing outside the process may make it fail, or an outage
/// of the database would restart every service.
async fn live() -> impl IntoResponse {
    Json(json!({ "live": true }))
}

async fn ready(State(admin): State<Admin>) -> impl IntoResponse {
    let report = admin.readiness.report();
    let status = if report.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, [(header::CACHE_CONTROL, "no-store")], Json(report))
}

async fn metrics(State(admin): State<Admin>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, METRICS_MEDIA_TYPE)], admin.metrics.render())
}

async fn openapi(State(admin): State<Admin>) -> impl IntoResponse {
    Json(admin.openapi)
}
