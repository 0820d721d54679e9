//! What is remembered about comparisons, for all replicas and across restarts: one row.

use serde::{Serialize, Serializer};
use sqlx::PgPool;
use time::OffsetDateTime;

use super::cause::Cause;
use super::stored::Look;

/// The last comparison, and whether another one is wanted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct State {
    /// `never`, `waiting` for the one that was asked for, `running` or `done`.
    pub(super) state: String,
    /// When somebody last asked for a comparison.
    #[serde(serialize_with = "instant")]
    pub(super) requested_at: Option<OffsetDateTime>,
    /// Everything that was sent before it was in the stream, or was published again.
    #[serde(serialize_with = "instant")]
    pub(super) verified_at: Option<OffsetDateTime>,
    /// Its age by the clock of the database.
    pub(super) verified_seconds_ago: Option<f64>,
    /// When the stream that was last looked at was created.
    #[serde(serialize_with = "instant")]
    pub(super) stream_created: Option<OffsetDateTime>,
    /// Its last sequence then.
    pub(super) last_sequence: Option<i64>,
    /// Why the last comparison was made.
    pub(super) cause: Option<String>,
    #[serde(serialize_with = "instant")]
    pub(super) started_at: Option<OffsetDateTime>,
    #[serde(serialize_with = "instant")]
    pub(super) finished_at: Option<OffsetDateTime>,
    /// Facts of the last comparison, so far when it is running.
    pub(super) checked: i64,
    /// Of them, those that the stream did not hold any more.
    pub(super) lost: i64,
    /// Of them, those that were put back into the outbox.
    pub(super) republished: i64,
    /// The same over all comparisons.
    pub(super) republished_total: i64,
    /// Why the last comparison could not be finished.
    pub(super) error: Option<String>,
    /// The clock of the database, against which all of these are to be read.
    #[serde(skip)]
    pub(super) now: OffsetDateTime,
}

/// How far a comparison has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Facts that were compared.
    pub(super) checked: u64,
    /// Facts that the stream did not hold any more.
    pub(super) lost: u64,
    /// Facts that were put back into the outbox.
    pub(super) republished: u64,
}

impl State {
    /// Before the first comparison.
    #[cfg(test)]
    pub(super) fn never(now: OffsetDateTime) -> Self {
        Self {
            state: "never".to_owned(),
            requested_at: None,
            verified_at: None,
            verified_seconds_ago: None,
            stream_created: None,
            last_sequence: None,
            cause: None,
            started_at: None,
            finished_at: None,
            checked: 0,
            lost: 0,
            republished: 0,
            republished_total: 0,
            error: None,
            now,
        }
    }

    /// How long ago the outbox was last known to be in the stream as a whole, in seconds.
    pub(crate) fn verified_seconds_ago(&self) -> Option<f64> {
        self.verified_seconds_ago
    }

    /// Facts that the last comparison looked at.
    pub(crate) fn checked(&self) -> u64 {
        self.checked.unsigned_abs()
    }

    /// Somebody asked for a comparison, and none has begun since.
    pub(super) fn is_requested(&self) -> bool {
        self.requested_at.is_some_and(|requested| self.started_at.is_none_or(|started| started < requested))
    }
}

pub(crate) async fn load(pool: &PgPool) -> sqlx::Result<State> {
    sqlx::query_as!(
        State,
        r#"
        select case when requested_at > coalesce(started_at, '-infinity') then 'waiting'
                    when started_at is null then 'never'
                    when finished_at is null then 'running'
                    else 'done' end as "state!",
               requested_at, verified_at, stream_created, last_sequence, cause, started_at, finished_at, checked, lost,
               republished, republished_total, error,
               extract(epoch from clock_timestamp() - verified_at)::float8 as verified_seconds_ago,
               clock_timestamp() as "now!"
        from mesh.reconcile_state
        "#
    )
    .fetch_one(pool)
    .await
}

/// Asks whoever does the work for a comparison.
pub(crate) async fn request(pool: &PgPool) -> sqlx::Result<()> {
    sqlx::query!("update mesh.reconcile_state set requested_at = clock_timestamp()").execute(pool).await?;
    Ok(())
}

pub(super) async fn begin(pool: &PgPool, cause: Cause) -> sqlx::Result<()> {
    sqlx::query!(
        r#"
        update mesh.reconcile_state
        set cause = $1, started_at = clock_timestamp(), finished_at = null, checked = 0, lost = 0, republished = 0, error = null
        "#,
        cause.name(),
    )
    .execute(pool)
    .await?;
    Ok(())
}

pub(super) async fn progress(pool: &PgPool, progress: Progress) -> sqlx::Result<()> {
    let [checked, lost, republished] = counts(progress);
    sqlx::query!(
        "update mesh.reconcile_state set checked = $1, lost = $2, republished = $3",
        checked,
        lost,
        republished,
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// The comparison reached its end: everything that was sent before `verified_at` is accounted for.
pub(super) async fn finish(
    pool: &PgPool,
    progress: Progress,
    look: Option<Look>,
    verified_at: OffsetDateTime,
) -> sqlx::Result<()> {
    let [checked, lost, republished] = counts(progress);
    sqlx::query!(
        r#"
        update mesh.reconcile_state
        set finished_at = clock_timestamp(), checked = $1, lost = $2, republished = $3,
            republished_total = republished_total + $3, verified_at = greatest(verified_at, $4),
            stream_created = coalesce($5, stream_created), last_sequence = coalesce($6, last_sequence)
        "#,
        checked,
        lost,
        republished,
        verified_at,
        look.map(|look| look.created),
        look.map(|look| look.last_sequence),
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// The comparison could not be finished. What it put back stays put back.
pub(super) async fn fail(pool: &PgPool, progress: Progress, error: &str) -> sqlx::Result<()> {
    let [checked, lost, republished] = counts(progress);
    sqlx::query!(
        r#"
        update mesh.reconcile_state
        set finished_at = clock_timestamp(), checked = $1, lost = $2, republished = $3,
            republished_total = republished_total + $3, error = $4
        "#,
        checked,
        lost,
        republished,
        error,
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Remembers how the stream looked when nothing was wrong with it.
pub(super) async fn saw(pool: &PgPool, look: Look) -> sqlx::Result<()> {
    sqlx::query!(
        "update mesh.reconcile_state set stream_created = $1, last_sequence = $2",
        look.created,
        look.last_sequence,
    )
    .execute(pool)
    .await?;
    Ok(())
}

fn counts(progress: Progress) -> [i64; 3] {
    [progress.checked, progress.lost, progress.republished].map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}

fn instant<S: Serializer>(instant: &Option<OffsetDateTime>, serializer: S) -> Result<S::Ok, S::Error> {
    instant.map(|instant| envelope::Timestamp::from_offset(instant).to_string()).serialize(serializer)
}
