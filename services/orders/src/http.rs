//! The HTTP surface; `openapi.json` describes it.

mod cancel_order;
mod place_order;
mod read;
mod view;

use axum::Router;
use axum::routing::get;
use mesh::Mesh;
use mesh::http::post;
use serde_json::Value;

use crate::Settings;

pub use cancel_order::CancelOrder;
pub use place_order::PlaceOrder;

/// The routes of this service.
pub fn routes(settings: Settings) -> Router<Mesh> {
    Router::new()
        .route("/orders", post(PlaceOrder { flow_deadline: settings.flow_deadline }).get(read::list))
        .route("/orders/{order_id}", get(read::one))
        .route("/orders/{order_id}/cancel", post(CancelOrder))
}

/// The OpenAPI document of [`routes`].
#[must_use]
pub fn openapi() -> Value {
    // A test holds the file to JSON and to the routes.
    serde_json::from_str(include_str!("../openapi.json")).unwrap_or_default()
}

#[cfg(test)]
mod tests;
