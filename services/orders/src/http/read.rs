//! `GET /orders/{order_id}` and `GET /orders`.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use mesh::Mesh;
use mesh::http::{Cursor, Limit, Page, Path, Problem, Query};
use serde::Deserialize;
use uuid::Uuid;

use super::view::OrderView;
use crate::store::{self, Filter};

pub(super) async fn one(State(mesh): State<Mesh>, Path(order_id): Path<Uuid>) -> Result<Response, Problem> {
    let order = store::find(&mut *mesh.pool().acquire().await?, order_id).await?;
    let order = order.ok_or_else(|| no_such_order(order_id))?;
    Ok(Json(OrderView::from(&order)).into_response())
}

pub(super) fn no_such_order(order_id: Uuid) -> Problem {
    Problem::not_found(format!("there is no order {order_id}"))
}

/// What can be asked of the list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    customer_id: Option<Uuid>,
    status: Option<StatusWord>,
    cursor: Option<String>,
    #[serde(default)]
    limit: Limit,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StatusWord {
    Pending,
    Confirmed,
    Cancelled,
}

impl StatusWord {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Confirmed => "confirmed",
            Self::Cancelled => "cancelled",
        }
    }
}

pub(super) async fn list(State(mesh): State<Mesh>, Query(parameters): Query<Parameters>) -> Result<Response, Problem> {
    let Parameters { customer_id, status, cursor, limit } = parameters;
    let before = cursor.as_deref().map(Cursor::decode).transpose()?;
    let filter = Filter { customer_id, status: status.map(StatusWord::as_str) };
    let orders = store::list(&mut *mesh.pool().acquire().await?, filter, before, limit.and_one()).await?;
    let views = orders.iter().map(OrderView::from).collect();
    Ok(Json(Page::new(views, limit, |view| view.order_id)?).into_response())
}
