//! What operators have done, and what they have done it to.

use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use uuid::Uuid;

use super::Desk;
use super::request::Refused;
use crate::Mesh;
use crate::dead_letter::{self, Action, Listed, Order, Progress};
use crate::telemetry::metrics;

/// `operation.show`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Show {
    operation_id: Uuid,
}

/// `operation.stop`: what is not done yet is not done any more.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stop {
    operation_id: Uuid,
    who: String,
}

/// The answer of `operation.list`.
#[derive(Debug, Serialize)]
pub(super) struct Operations {
    operations: Vec<Listed>,
}

/// `dead.redrive`: answers when the operation is written down; any replica works on it.
pub(super) async fn redrive(desk: &Desk, order: Order) -> Result<Progress, Refused> {
    let progress = order.submit(desk.mesh.pool(), Action::Redrive).await?;
    desk.redriver.wake();
    Ok(progress)
}

/// `dead.discard`: answers when all of it is done.
pub(super) async fn discard(desk: &Desk, order: Order) -> Result<Progress, Refused> {
    let progress = order.submit(desk.mesh.pool(), Action::Discard).await?;
    if progress.is_new() {
        metrics::discarded(progress.total());
    }
    // What waited behind them is free.
    desk.redriver.wake();
    Ok(progress)
}

/// `outbox.retry`: answers when the rows are back.
pub(super) async fn retry(mesh: &Mesh, order: Order) -> Result<Progress, Refused> {
    let progress = order.submit(mesh.pool(), Action::Retry).await?;
    if progress.is_new() {
        metrics::outbox_retried(progress.total());
    }
    mesh.context().wake.facts_committed();
    Ok(progress)
}

pub(super) async fn list(pool: &PgPool) -> Result<Operations, Refused> {
    Ok(Operations { operations: Progress::list(pool).await? })
}

pub(super) async fn show(pool: &PgPool, Show { operation_id }: Show) -> Result<Progress, Refused> {
    Ok(Progress::of(pool, operation_id).await?)
}

pub(super) async fn stop(pool: &PgPool, Stop { operation_id, who }: Stop) -> Result<Progress, Refused> {
    if dead_letter::stop(pool, operation_id, &who).await? {
        tracing::info!(operation = %operation_id, who, "an operation was stopped");
    }
    Ok(Progress::of(pool, operation_id).await?)
}
