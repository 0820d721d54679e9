//! Reading committed rows. Rows are taken by visibility: no statement here skips a row because a later one was seen.

use bytes::Bytes;
use sqlx::PgPool;

use super::row::Row;

/// Where to read in one leased group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) bucket_group: i16,
    pub(super) epoch: i64,
    /// Rows above this sequence.
    pub(super) after: i64,
}

/// Rows above `after` in each group, in sequence order, at most `limit` per group, without those of `held` keys.
pub(super) async fn above(pool: &PgPool, ranges: &[Range], held: &[String], limit: i64) -> sqlx::Result<Vec<Row>> {
    let groups: Vec<i16> = ranges.iter().map(|range| range.bucket_group).collect();
    let after: Vec<i64> = ranges.iter().map(|range| range.after).collect();
    let epochs: Vec<i64> = ranges.iter().map(|range| range.epoch).collect();
    sqlx::query!(
        r#"
        select f.epoch as "epoch!", o.bucket_group as "bucket_group!", o.seq as "seq!", o.event_id as "event_id!",
               o.subject as "subject!", o.partition_key as "partition_key!", o.key_version as "key_version!",
               o.headers as "headers!", o.payload as "payload!", o.occurred_at as "occurred_at!", o.attempts as "attempts!"
        from unnest($1::smallint[], $2::bigint[], $3::bigint[]) as f (bucket_group, after, epoch)
        cross join lateral (
            select bucket_group, seq, event_id, subject, partition_key, key_version, headers, payload, occurred_at, attempts
            from mesh.outbox
            where bucket_group = f.bucket_group and seq > f.after and partition_key <> all ($4::text[])
            order by seq
            limit $5
        ) o
        "#,
        &groups,
        &after,
        &epochs,
        held,
        limit,
    )
    .map(|row| Row {
        bucket_group: row.bucket_group,
        seq: row.seq,
        event_id: row.event_id,
        subject: row.subject,
        key: row.partition_key,
        key_version: row.key_version,
        headers: row.headers,
        payload: Bytes::from(row.payload),
        occurred_at: row.occurred_at,
        attempts: row.attempts,
        epoch: row.epoch,
    })
    .fetch_all(pool)
    .await
}

/// The sequences of all visible rows up to `until` in each group: what a deep backlog left behind its reading position,
/// because it was committed late. Rows of `held` keys are left out.
pub(super) async fn sequences_up_to(
    pool: &PgPool,
    ranges: &[Range],
    until: &[i64],
    held: &[String],
) -> sqlx::Result<Vec<(i16, i64)>> {
    let groups: Vec<i16> = ranges.iter().map(|range| range.bucket_group).collect();
    let after: Vec<i64> = ranges.iter().map(|range| range.after).collect();
    sqlx::query!(
        r#"
        select o.bucket_group as "bucket_group!", o.seq as "seq!"
        from unnest($1::smallint[], $2::bigint[], $3::bigint[]) as f (bucket_group, after, until)
        cross join lateral (
            select bucket_group, seq from mesh.outbox
            where bucket_group = f.bucket_group and seq > f.after and seq <= f.until and partition_key <> all ($4::text[])
            order by seq
        ) o
        "#,
        &groups,
        &after,
        until,
        held,
    )
    .map(|row| (row.bucket_group, row.seq))
    .fetch_all(pool)
    .await
}
