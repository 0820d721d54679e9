//! `GET /stock/{sku}` and `GET /stock`.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use events::Sku;
use mesh::Mesh;
use mesh::http::{Cursor, Limit, Page, Path, Problem, Query};
use serde::Deserialize;

use super::view::StockView;
use crate::store::stock;

pub(super) async fn one(State(mesh): State<Mesh>, Path(sku): Path<Sku>) -> Result<Response, Problem> {
    let stock = stock::find(&mut *mesh.pool().acquire().await?, &sku).await?;
    let stock = stock.ok_or_else(|| no_such_sku(&sku))?;
    Ok(Json(StockView::from(&stock)).into_response())
}

pub(super) fn no_such_sku(sku: &Sku) -> Problem {
    Problem::not_found(format!("the SKU {sku} is not kept in stock"))
}

/// What can be asked of the list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    cursor: Option<String>,
    #[serde(default)]
    limit: Limit,
}

pub(super) async fn list(State(mesh): State<Mesh>, Query(parameters): Query<Parameters>) -> Result<Response, Problem> {
    let Parameters { cursor, limit } = parameters;
    let after: Option<Sku> = cursor.as_deref().map(Cursor::decode).transpose()?;
    let after = after.as_ref().map_or("", Sku::as_str);
    let stock = stock::list(&mut *mesh.pool().acquire().await?, after, limit.and_one()).await?;
    let views = stock.iter().map(StockView::from).collect();
    Ok(Json(Page::new(views, limit, |view| view.sku.clone())?).into_response())
}
