//! The HTTP surface; `openapi.json` describes it.

mod deposit;
mod open_account;
mod read;
mod view;

use axum::Router;
use axum::routing::get;
use mesh::Mesh;
use mesh::http::post;
use serde_json::Value;

pub use deposit::Deposit;
pub use open_account::OpenAccount;

/// The routes of this service.
pub fn routes() -> Router<Mesh> {
    Router::new()
        .route("/accounts", post(OpenAccount))
        .route("/accounts/{customer_id}", get(read::account))
        .route("/accounts/{customer_id}/deposits", post(Deposit))
        .route("/accounts/{customer_id}/entries", get(read::entries))
}

/// The OpenAPI document of [`routes`].
#[must_use]
pub fn openapi() -> Value {
    // A test holds the file to JSON and to the routes.
    serde_json::from_str(include_str!("../openapi.json")).unwrap_or_default()
}

#[cfg(test)]
mod tests;
