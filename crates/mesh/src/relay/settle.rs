//! What happens to a row after its publish: acknowledged rows move, refused rows are counted, hopeless rows are put aside.
//! Every statement is fenced by the epoch of the lease under which the row was read.

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use super::row::Row;

/// A row that the stream acknowledged with a sequence above 0.
#[derive(Debug, Clone)]
pub(super) struct Acknowledged {
    pub(super) bucket_group: i16,
    pub(super) seq: i64,
    pub(super) epoch: i64,
    pub(super) stream_sequence: i64,
}

/// Which stream acknowledged: a stream that was deleted and made again counts its sequences anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamIdentity {
    pub(super) created: OffsetDateTime,
}

/// Moves acknowledged rows to `outbox_sent` in one statement. Returns how many moved: fewer than given means that a lease
/// was lost, and its new holder publishes those rows again.
pub(super) async fn move_sent(
    pool: &PgPool,
    owner: Uuid,
    identity: StreamIdentity,
    rows: &[Acknowledged],
) -> sqlx::Result<u64> {
    let groups: Vec<i16> = rows.iter().map(|row| row.bucket_group).collect();
    let sequences: Vec<i64> = rows.iter().map(|row| row.seq).collect();
    let epochs: Vec<i64> = rows.iter().map(|row| row.epoch).collect();
    let stream_sequences: Vec<i64> = rows.iter().map(|row| row.stream_sequence).collect();
    let moved = sqlx::query!(
        r#"
        with acknowledged as (
            select * from unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::bigint[])
                as a (bucket_group, seq, epoch, stream_sequence)
        ), moved as (
            delete from mesh.outbox o
            using acknowledged a, mesh.outbox_lease l
            where o.bucket_group = a.bucket_group and o.seq = a.seq
              and l.bucket_group = a.bucket_group and l.owner = $5 and l.epoch = a.epoch
            returning o.bucket_group, o.seq, o.event_id, o.subject, o.event_type, o.partition_key, o.key_version, o.headers,
                      o.payload, o.occurred_at, o.created_at, o.attempts, a.stream_sequence
        )
        insert into mesh.outbox_sent
            (bucket_group, seq, event_id, subject, event_type, partition_key, key_version, headers, payload, occurred_at,
             created_at, attempts, stream, stream_created, stream_sequence)
        select bucket_group, seq, event_id, subject, event_type, partition_key, key_version, headers, payload, occurred_at,
               created_at, attempts, $6, $7, stream_sequence
        from moved
        "#,
        &groups,
        &sequences,
        &epochs,
        &stream_sequences,
        owner,
        crate::broker::STREAM,
        identity.created,
    )
    .execute(pool)
    .await?;
    Ok(moved.rows_affected())
}

/// Counts a refused publish of a row and keeps the reason with it.
pub(super) async fn count_refusal(pool: &PgPool, owner: Uuid, row: &Row, error: &str) -> sqlx::Result<()> {
    sqlx::query!(
        r#"
        update mesh.outbox o set attempts = o.attempts + 1, last_error = $5
        from mesh.outbox_lease l
        where o.bucket_group = $1 and o.seq = $2 and l.bucket_group = o.bucket_group and l.owner = $3 and l.epoch = $4
        "#,
        row.bucket_group,
        row.seq,
        owner,
        row.epoch,
        error,
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Puts a hopeless row aside with its last error. The later rows of its key wait behind it.
pub(super) async fn move_dead(pool: &PgPool, owner: Uuid, row: &Row, error: &str) -> sqlx::Result<()> {
    sqlx::query!(
        r#"
        with moved as (
            delete from mesh.outbox o
            using mesh.outbox_lease l
            where o.bucket_group = $1 and o.seq = $2 and l.bucket_group = o.bucket_group and l.owner = $3 and l.epoch = $4
            returning o.bucket_group, o.seq, o.event_id, o.subject, o.event_type, o.partition_key, o.key_version, o.headers,
                      o.payload, o.occurred_at, o.created_at, o.attempts
        )
        insert into mesh.outbox_dead
            (bucket_group, seq, event_id, subject, event_type, partition_key, key_version, headers, payload, occurred_at,
             created_at, attempts, error)
        select bucket_group, seq, event_id, subject, event_type, partition_key, key_version, headers, payload, occurred_at,
               created_at, attempts + 1, $5
        from moved
        "#,
        row.bucket_group,
        row.seq,
        owner,
        row.epoch,
        error,
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// The keys whose rows wait behind one that was put aside.
pub(super) async fn dead_keys(pool: &PgPool) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!("select distinct partition_key from mesh.outbox_dead").fetch_all(pool).await
}

#[cfg(test)]
mod tests;
