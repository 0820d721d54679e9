//! `GET /accounts/{customer_id}` and `GET /accounts/{customer_id}/entries`.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use mesh::Mesh;
use mesh::http::{Cursor, Limit, Page, Path, Problem, Query};
use serde::Deserialize;
use uuid::Uuid;

use super::view::{AccountView, EntryView};
use crate::ledger;

pub(super) async fn account(State(mesh): State<Mesh>, Path(customer_id): Path<Uuid>) -> Result<Response, Problem> {
    let account = ledger::load(&mut *mesh.pool().acquire().await?, customer_id).await?;
    let account = account.ok_or_else(|| no_such_account(customer_id))?;
    Ok(Json(AccountView::from(&account)).into_response())
}

pub(super) fn no_such_account(customer_id: Uuid) -> Problem {
    Problem::not_found(format!("the customer {customer_id} has no account"))
}

/// What can be asked of the list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    cursor: Option<String>,
    #[serde(default)]
    limit: Limit,
}

pub(super) async fn entries(
    State(mesh): State<Mesh>,
    Path(customer_id): Path<Uuid>,
    Query(parameters): Query<Parameters>,
) -> Result<Response, Problem> {
    let Parameters { cursor, limit } = parameters;
    let after: i64 = cursor.as_deref().map(Cursor::decode).transpose()?.unwrap_or(0);
    let connection = &mut *mesh.pool().acquire().await?;
    let entries = ledger::entries(connection, customer_id, after, limit.and_one()).await?;
    // An account has at least its opening.
    if entries.is_empty() && after == 0 {
        return Err(no_such_account(customer_id));
    }
    let views = entries.iter().map(EntryView::from).collect();
    Ok(Json(Page::new(views, limit, |view| view.version)?).into_response())
}
