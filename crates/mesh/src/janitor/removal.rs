//! The statements that remove. Ages are by the clock of the database.

use std::ops::BitAndAssign;
use std::time::Duration;

use sqlx::PgPool;

/// The code of a statement that gave up on a lock.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// What is kept for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    OutboxSent,
    Inbox,
    Idempotency,
    Attempts,
    Discarded,
    Operations,
}

impl Kept {
    /// Its table.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::OutboxSent => "outbox_sent",
            Self::Inbox => "inbox",
            Self::Idempotency => "idempotency",
            Self::Attempts => "delivery_attempt",
            Self::Discarded => "dead_letter",
            Self::Operations => "operation",
        }
    }
}

/// Whether everything that was due is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removed {
    All,
    Some,
}

impl BitAndAssign for Removed {
    fn bitand_assign(&mut self, other: Self) {
        if other == Self::Some {
            *self = Self::Some;
        }
    }
}

/// Whether somebody holds what was to be removed.
pub(super) fn is_held(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE))
}

/// Drops the oldest partition in which everything is older than `retention`; returns its name if there is one.
pub(super) async fn drop_partition(pool: &PgPool, kept: Kept, retention: Duration) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!(
        "select mesh.drop_partition($1, clock_timestamp() - make_interval(secs => $2))",
        kept.name(),
        retention.as_secs_f64(),
    )
    .fetch_one(pool)
    .await
}

/// Deletes at most `most` rows that are older than `retention`; returns how many.
pub(super) async fn delete(pool: &PgPool, kept: Kept, retention: Duration, most: i64) -> sqlx::Result<u64> {
    let seconds = retention.as_secs_f64();
    match kept {
        Kept::OutboxSent | Kept::Inbox => from_default(pool, kept, seconds, most).await,
        Kept::Idempotency => idempotency(pool, seconds, most).await,
        Kept::Attempts => attempts(pool, seconds, most).await,
        Kept::Discarded => discarded(pool, seconds, most).await,
        Kept::Operations => operations(pool, seconds, most).await,
    }
}

async fn from_default(pool: &PgPool, kept: Kept, seconds: f64, most: i64) -> sqlx::Result<u64> {
    let deleted = sqlx::query_scalar!(
        r#"select mesh.delete_from_default($1, clock_timestamp() - make_interval(secs => $2), $3) as "deleted!""#,
        kept.name(),
        seconds,
        i32::try_from(most).unwrap_or(i32::MAX),
    )
    .fetch_one(pool)
    .await?;
    Ok(deleted.unsigned_abs().into())
}

async fn idempotency(pool: &PgPool, seconds: f64, most: i64) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        r#"
        delete from mesh.idempotency
        where (operation, key) in (
            select operation, key from mesh.idempotency
            where created_at < clock_timestamp() - make_interval(secs => $1)
            order by created_at limit $2
            for update skip locked
        )
        "#,
        seconds,
        most,
    )
    .execute(pool)
    .await?;
    Ok(deleted.rows_affected())
}

/// Attempts at deliveries that cannot come again.
async fn attempts(pool: &PgPool, seconds: f64, most: i64) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        r#"
        delete from mesh.delivery_attempt
        where (event_id, subscriber) in (
            select event_id, subscriber from mesh.delivery_attempt
            where first_at < clock_timestamp() - make_interval(secs => $1)
            limit $2
            for update skip locked
        )
        "#,
        seconds,
        most,
    )
    .execute(pool)
    .await?;
    Ok(deleted.rows_affected())
}

/// What somebody decided to give up. What is parked or dead waits for a person, however long.
async fn discarded(pool: &PgPool, seconds: f64, most: i64) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        r#"
        delete from mesh.dead_letter
        where id in (
            select id from mesh.dead_letter
            where state = 'discarded' and discarded_at < clock_timestamp() - make_interval(secs => $1)
            order by id limit $2
            for update skip locked
        )
        "#,
        seconds,
        most,
    )
    .execute(pool)
    .await?;
    Ok(deleted.rows_affected())
}

/// What operators had done, with its members: the record of a redrive outlives the letters that it brought back.
async fn operations(pool: &PgPool, seconds: f64, most: i64) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        r#"
        delete from mesh.operation
        where operation_id in (
            select operation_id from mesh.operation
            where finished_at < clock_timestamp() - make_interval(secs => $1)
            limit $2
            for update skip locked
        )
        "#,
        seconds,
        most,
    )
    .execute(pool)
    .await?;
    Ok(deleted.rows_affected())
}
