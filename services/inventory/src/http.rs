//! The HTTP surface; `openapi.json` describes it.

mod count_stock;
mod read;
mod restock;
mod view;

use axum::Router;
use axum::routing::get;
use mesh::Mesh;
use mesh::http::{post, put};
use serde_json::Value;

pub use count_stock::CountStock;
pub use restock::Restock;

/// The routes of this service.
pub fn routes() -> Router<Mesh> {
    Router::new()
        .route("/stock", get(read::list))
        .route("/stock/{sku}", put(CountStock).get(read::one))
        .route("/stock/{sku}/restocks", post(Restock))
}

/// The OpenAPI document of [`routes`].
#[must_use]
pub fn openapi() -> Value {
    // A test holds the file to JSON and to the routes.
    serde_json::from_str(include_str!("../openapi.json")).unwrap_or_default()
}

#[cfg(test)]
mod tests;
