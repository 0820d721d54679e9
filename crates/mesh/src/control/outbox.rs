//! The outbox as an operator asks for it: how much waits, for how long, behind what, and who publishes.

use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use super::request::Refused;
use crate::dead_letter::{Action, TOKEN_SECONDS, insert_preview};
use crate::outbox::{retry, status, why};

/// Keys in trouble that are listed, oldest first.
const KEYS_MAX: i64 = 100;

/// The code of a statement that was ended by its time limit.
const QUERY_CANCELED: &str = "57014";

/// The answer of `mesh.ctl.<service>.outbox`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Outbox {
    /// Facts that wait, counted up to a million.
    pending: u64,
    /// Age of the oldest of them, 0 when none waits.
    oldest_pending_seconds: f64,
    /// Facts that the relay gave up.
    failed: u64,
    /// Facts that the stream acknowledged within the last hour; null when counting them would take too long.
    sent_last_hour: Option<i64>,
    /// The 16 bucket groups and who publishes them.
    groups: Vec<Group>,
    /// Keys whose next fact failed at least once and is tried again.
    backing_off: Vec<BackingOff>,
    /// Facts that were given up; later facts of their keys wait behind them.
    dead: Vec<Dead>,
}

/// One bucket group.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Group {
    bucket_group: i16,
    /// The instance that publishes it; null when nobody does.
    owner: Option<Uuid>,
    /// How that instance calls itself.
    label: Option<String>,
    /// Grows with every change of hands.
    epoch: i64,
    /// By the clock of the database; negative when the lease has run out.
    expires_in_seconds: Option<f64>,
    /// Age of the group's oldest fact; null when none waits.
    oldest_pending_seconds: Option<f64>,
}

/// A key whose next fact failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct BackingOff {
    key: String,
    event_id: Uuid,
    attempts: i32,
    last_error: Option<String>,
    waiting_seconds: f64,
}

/// A fact that was given up.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Dead {
    key: String,
    event_id: Uuid,
    event_type: String,
    attempts: i32,
    error: String,
    dead_for_seconds: f64,
}

/// What a retry would put back.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct RetryPreview {
    action: Action,
    /// Good for this set for the time given; null when there is nothing to do.
    token: Option<Uuid>,
    valid_seconds: u32,
    /// The size of the set.
    eligible: usize,
    /// Of the set: not asked for, but before a row that was, in its key.
    included: usize,
    /// More rows agree with what was asked for than one retry takes.
    more: bool,
}

/// Finds what a retry would put back, and remembers the set under a token.
pub(super) async fn preview(pool: &PgPool, filter: retry::Filter) -> Result<RetryPreview, Refused> {
    let dead = retry::find(pool, &filter).await?;
    let token = match dead.members.as_slice() {
        [] => None,
        members => Some(insert_preview(pool, Action::Retry, members, &dead.digest).await?),
    };
    Ok(RetryPreview {
        action: Action::Retry,
        token,
        valid_seconds: TOKEN_SECONDS,
        eligible: dead.members.len(),
        included: dead.included,
        more: dead.more,
    })
}

/// Where facts are and what holds them up.
pub(super) async fn why(pool: &PgPool, question: why::Question) -> Result<why::Explanation, Refused> {
    if question.event_id.is_none() && question.key.is_none() {
        return Err(Refused::Bad("`event_id` or `key` says what to look for".to_owned()));
    }
    Ok(why::explain(pool, &question).await?)
}

/// Reads all of it.
pub(super) async fn look(pool: &PgPool) -> sqlx::Result<Outbox> {
    let gauges = status::gauges(pool).await?;
    Ok(Outbox {
        pending: gauges.pending,
        oldest_pending_seconds: gauges.oldest.as_secs_f64(),
        failed: gauges.failed,
        sent_last_hour: sent_last_hour(pool).await?,
        groups: groups(pool).await?,
        backing_off: backing_off(pool).await?,
        dead: dead(pool).await?,
    })
}

async fn groups(pool: &PgPool) -> sqlx::Result<Vec<Group>> {
    sqlx::query_as!(
        Group,
        r#"
        select l.bucket_group, l.owner, r.label as "label?", l.epoch,
               case when isfinite(l.expires_at)
                    then extract(epoch from l.expires_at - clock_timestamp())::float8 end as expires_in_seconds,
               (select extract(epoch from clock_timestamp() - o.created_at)::float8
                from mesh.outbox o where o.bucket_group = l.bucket_group
                order by o.seq limit 1) as oldest_pending_seconds
        from mesh.outbox_lease l left join mesh.outbox_relay r on r.owner = l.owner
        order by l.bucket_group
        "#
    )
    .fetch_all(pool)
    .await
}

async fn backing_off(pool: &PgPool) -> sqlx::Result<Vec<BackingOff>> {
    sqlx::query_as!(
        BackingOff,
        r#"
        select partition_key as key, event_id, attempts, last_error,
               extract(epoch from clock_timestamp() - created_at)::float8 as "waiting_seconds!"
        from mesh.outbox where attempts > 0
        order by created_at limit $1
        "#,
        KEYS_MAX,
    )
    .fetch_all(pool)
    .await
}

async fn dead(pool: &PgPool) -> sqlx::Result<Vec<Dead>> {
    sqlx::query_as!(
        Dead,
        r#"
        select partition_key as key, event_id, event_type, attempts, error,
               extract(epoch from clock_timestamp() - died_at)::float8 as "dead_for_seconds!"
        from mesh.outbox_dead order by died_at limit $1
        "#,
        KEYS_MAX,
    )
    .fetch_all(pool)
    .await
}

/// There is no index for it, on purpose: the table is written for every fact and read by hand only.
async fn sent_last_hour(pool: &PgPool) -> sqlx::Result<Option<i64>> {
    let mut tx = pool.begin().await?;
    sqlx::query("set local statement_timeout = '2s'").execute(&mut *tx).await?;
    let count = sqlx::query_scalar!(
        r#"select count(*) as "count!" from mesh.outbox_sent where sent_at > now() - interval '1 hour'"#
    )
    .fetch_one(&mut *tx)
    .await;
    tx.rollback().await?;
    match count {
        Ok(count) => Ok(Some(count)),
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(QUERY_CANCELED) => Ok(None),
        Err(error) => Err(error),
    }
}
