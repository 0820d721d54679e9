//! What the outbox has sent: read by stretches of time, put back when the stream lost it.

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::task_lease::{Task, TaskLease};

/// A fact that the stream once acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) event_id: Uuid,
    pub(super) sent_at: OffsetDateTime,
    pub(super) stream_created: OffsetDateTime,
    pub(super) stream_sequence: i64,
    /// Its place among the facts of its key.
    pub(super) key_version: i64,
}

/// A stretch of time, its end excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: OffsetDateTime,
    pub(super) until: OffsetDateTime,
}

/// The facts that were sent in a stretch; with `every` above 1 a sample of them, one of so many.
pub(super) async fn within(pool: &PgPool, stretch: Stretch, every: i64) -> sqlx::Result<Vec<Sent>> {
    sqlx::query_as!(
        Sent,
        r#"
        select event_id, sent_at, stream_created, stream_sequence, key_version
        from mesh.outbox_sent
        where sent_at >= $1 and sent_at < $2 and mod(stream_sequence, $3) = 0
        "#,
        stretch.from,
        stretch.until,
        every,
    )
    .fetch_all(pool)
    .await
}

/// How many facts were sent in a stretch.
pub(super) async fn count(pool: &PgPool, stretch: Stretch) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select count(*) as "count!" from mesh.outbox_sent where sent_at >= $1 and sent_at < $2"#,
        stretch.from,
        stretch.until,
    )
    .fetch_one(pool)
    .await
}

/// Whether anything was ever sent and is still remembered.
pub(super) async fn is_any(pool: &PgPool) -> sqlx::Result<bool> {
    sqlx::query_scalar!(r#"select exists (select from mesh.outbox_sent) as "any!""#).fetch_one(pool).await
}

/// Puts facts back into the outbox, in the given order. Returns how many: one that was moved meanwhile stays where it is,
/// and without the lease none is moved.
///
/// They get new sequences. The relay reads from a floor below which it has proven that nothing appears any more, so a row
/// that came back under its old sequence would never be read.
pub(super) async fn put_back(
    pool: &PgPool,
    lease: TaskLease,
    look_created: OffsetDateTime,
    lost: &[Sent],
) -> sqlx::Result<u64> {
    let ids: Vec<Uuid> = lost.iter().map(|sent| sent.event_id).collect();
    let instants: Vec<OffsetDateTime> = lost.iter().map(|sent| sent.sent_at).collect();
    let moved = sqlx::query!(
        r#"
        with lost as (
            select event_id, sent_at, position
            from unnest($1::uuid[], $2::timestamptz[]) with ordinality as l (event_id, sent_at, position)
        ), moved as (
            delete from mesh.outbox_sent s
            using lost l
            where s.event_id = l.event_id and s.sent_at = l.sent_at
              and exists (select from mesh.task_lease where task = $3 and owner = $4 and epoch = $5)
            returning l.position, s.bucket_group, s.event_id, s.subject, s.event_type, s.partition_key, s.key_version,
                      s.headers, s.payload, s.occurred_at, s.stream_created, s.stream_sequence
        )
        insert into mesh.outbox
            (bucket_group, event_id, subject, event_type, partition_key, key_version, headers, payload, occurred_at,
             lost_sequence)
        select bucket_group, event_id, subject, event_type, partition_key, key_version, headers, payload, occurred_at,
               case when stream_created = $6 then stream_sequence else 0 end
        from moved
        order by position
        "#,
        &ids,
        &instants,
        Task::Reconcile.name(),
        lease.owner,
        lease.epoch,
        look_created,
    )
    .execute(pool)
    .await?;
    Ok(moved.rows_affected())
}
