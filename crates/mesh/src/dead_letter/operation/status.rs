//! How far an operation is.

use std::collections::BTreeMap;

use serde::Serialize;
use sqlx::PgPool;
use time::OffsetDateTime;
use time::serde::rfc3339;
use uuid::Uuid;

use super::OperationError;

/// Members that are shown with what is wrong with them.
const TROUBLES_MAX: i64 = 20;

/// Operations that are listed.
const LISTED_MAX: i64 = 50;

/// An operation and what became of its members.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Progress {
    operation_id: Uuid,
    action: String,
    /// `running`, `finished`, or `stopped` before its end.
    state: String,
    stop_reason: Option<String>,
    reason: String,
    requested_by: String,
    #[serde(with = "rfc3339")]
    requested_at: OffsetDateTime,
    #[serde(with = "rfc3339::option")]
    finished_at: Option<OffsetDateTime>,
    rate_per_second: i32,
    /// All members.
    total: i64,
    /// Members by outcome; those that are not done have none.
    outcomes: BTreeMap<String, i64>,
    /// The first members that did not go through.
    troubles: Vec<Trouble>,
    /// This answer is to the request that began it.
    #[serde(skip)]
    is_new: bool,
}

/// A member that did not go through.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Trouble {
    member: i64,
    event_id: Uuid,
    subscriber: Option<String>,
    outcome: String,
    detail: Option<String>,
}

/// An operation without its members.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Listed {
    operation_id: Uuid,
    action: String,
    state: String,
    stop_reason: Option<String>,
    reason: String,
    requested_by: String,
    #[serde(with = "rfc3339")]
    requested_at: OffsetDateTime,
    #[serde(with = "rfc3339::option")]
    finished_at: Option<OffsetDateTime>,
}

impl Progress {
    /// Reads it.
    ///
    /// # Errors
    /// When there is none of that id, or the database fails.
    pub(crate) async fn of(pool: &PgPool, operation_id: Uuid) -> Result<Self, OperationError> {
        let row = sqlx::query!(
            r#"
            select action, state, stop_reason, reason, requested_by, requested_at, finished_at, rate_per_second
            from mesh.operation where operation_id = $1
            "#,
            operation_id,
        )
        .fetch_optional(pool)
        .await?
        .ok_or(OperationError::Unknown(operation_id))?;
        let counts = counts(pool, operation_id).await?;
        Ok(Self {
            operation_id,
            action: row.action,
            state: row.state,
            stop_reason: row.stop_reason,
            reason: row.reason,
            requested_by: row.requested_by,
            requested_at: row.requested_at,
            finished_at: row.finished_at,
            rate_per_second: row.rate_per_second,
            total: counts.iter().map(|(_, count)| count).sum(),
            outcomes: counts.into_iter().filter_map(|(outcome, count)| Some((outcome?, count))).collect(),
            troubles: troubles(pool, operation_id).await?,
            is_new: false,
        })
    }

    /// Whether the request that is answered with this began it, or asked for it again.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    pub(super) fn begun_now(self, is_new: bool) -> Self {
        Self { is_new, ..self }
    }

    /// All members.
    pub(crate) fn total(&self) -> u64 {
        self.total.unsigned_abs()
    }

    /// The last operations, the newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) async fn list(pool: &PgPool) -> sqlx::Result<Vec<Listed>> {
        sqlx::query_as!(
            Listed,
            r#"
            select operation_id, action, state, stop_reason, reason, requested_by, requested_at, finished_at
            from mesh.operation order by requested_at desc limit $1
            "#,
            LISTED_MAX,
        )
        .fetch_all(pool)
        .await
    }
}

/// By outcome; none for what is not done.
async fn counts(pool: &PgPool, operation_id: Uuid) -> sqlx::Result<Vec<(Option<String>, i64)>> {
    let rows = sqlx::query!(
        r#"
        select outcome, count(*) as "count!" from mesh.operation_item where operation_id = $1 group by outcome
        "#,
        operation_id,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| (row.outcome, row.count)).collect())
}

async fn troubles(pool: &PgPool, operation_id: Uuid) -> sqlx::Result<Vec<Trouble>> {
    sqlx::query_as!(
        Trouble,
        r#"
        select member, event_id, subscriber, outcome as "outcome!", detail
        from mesh.operation_item
        where operation_id = $1 and outcome in ('failed', 'waits', 'refused')
        order by position
        limit $2
        "#,
        operation_id,
        TROUBLES_MAX,
    )
    .fetch_all(pool)
    .await
}
