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

/// Rows above `after` in each group, in sequence order, at most `limit` per group, without those in flight and those of
/// `held` keys.
///
/// The arrays are compared by hash only in a plan made for their values; the relay's connections ask for such plans.
pub(super) async fn above(
    pool: &PgPool,
    ranges: &[Range],
    in_flight: &[i64],
    held: &[String],
    limit: i64,
) -> sqlx::Result<Vec<Row>> {
    let groups: Vec<i16> = ranges.iter().map(|range| range.bucket_group).collect();
    let after: Vec<i64> = ranges.iter().map(|range| range.after).collect();
    let epochs: Vec<i64> = ranges.iter().map(|range| range.epoch).collect();
    sqlx::query!(
        r#"
        select f.epoch as "epoch!", o.bucket_group as "bucket_group!", o.seq as "seq!", o.event_id as "event_id!",
               o.subject as "subject!", o.partition_key as "partition_key!", o.key_version as "key_version!",
               o.headers as "headers!", o.payload as "payload!", o.occurred_at as "occurred_at!", o.attempts as "attempts!",
               o.lost_sequence as "lost_sequence?"
        from unnest($1::smallint[], $2::bigint[], $3::bigint[]) as f (bucket_group, after, epoch)
        cross join lateral (
            select bucket_group, seq, event_id, subject, partition_key, key_version, headers, payload, occurred_at, attempts,
                   lost_sequence
            from mesh.outbox
            where bucket_group = f.bucket_group and seq > f.after
              and seq <> all ($4::bigint[]) and partition_key <> all ($5::text[])
            order by seq
            limit $6
        ) o
        "#,
        &groups,
        &after,
        &epochs,
        in_flight,
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
        lost_sequence: row.lost_sequence,
        epoch: row.epoch,
    })
    .fetch_all(pool)
    .await
}

#[cfg(test)]
mod tests;
