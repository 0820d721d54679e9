//! The server of a process.

use std::io;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn;
use axum::serve::ListenerExt;
use serde_json::Value;
use tokio::net::TcpListener;
use tower_http::catch_panic::CatchPanicLayer;

use super::admin::Admin;
use super::{BODY_BYTES_MAX, layers};
use crate::lifecycle::{Lifecycle, Readiness};
use crate::telemetry::metrics::Exposition;

/// The service's own routes and those of every service, with what happens around each request.
pub(crate) fn router(readiness: &Readiness, routes: Router, openapi: Option<Value>, metrics: Exposition) -> Router {
    let admin = Admin { readiness: readiness.clone(), metrics, openapi };
    routes
        .merge(admin.routes())
        .layer(CatchPanicLayer::custom(layers::panicked))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn(layers::observe))
}

/// Serves until the soft token; then accepts no connection, lets the requests in flight end, and returns. The hard token
/// ends it at once.
///
/// # Errors
/// When the listener fails for good.
pub(crate) async fn serve(listener: TcpListener, router: Router, lifecycle: Lifecycle) -> io::Result<()> {
    let listener = listener.tap_io(|connection| {
        // Replies are written whole; waiting for more only delays them.
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps Nagle's algorithm");
        }
    });
    let stop = lifecycle.soft().clone().cancelled_owned();
    let serving = axum::serve(listener, router).with_graceful_shutdown(stop);
    tokio::select! {
        served = serving => served,
        () = lifecycle.hard().cancelled() => Ok(()),
    }
}

#[cfg(test)]
mod tests;
