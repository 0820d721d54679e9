//! Rows that the relay gave up, back into the outbox: in their old places, before the later rows of their keys.

use serde::Deserialize;
use sha2::{Digest, Sha256};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

/// Rows that one retry takes at most.
const ROWS_MAX: i64 = 10_000;

/// Which rows are meant: those that agree with everything that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Filter {
    pub(crate) event_id: Option<Uuid>,
    pub(crate) key: Option<String>,
    pub(crate) event_type: Option<String>,
}

/// The rows that a retry would put back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dead {
    /// By sequence, in order.
    pub(crate) members: Vec<i64>,
    pub(crate) digest: Vec<u8>,
    /// Not asked for, but before a row that was, in its key.
    pub(crate) included: usize,
    /// More rows agree with what was asked for than one retry takes.
    pub(crate) more: bool,
}

/// Finds the rows that agree with `filter`, and those that are before them in their keys.
pub(crate) async fn find(pool: &PgPool, filter: &Filter) -> sqlx::Result<Dead> {
    let rows = sqlx::query!(
        r#"
        with picked as (
            select bucket_group, seq, partition_key from mesh.outbox_dead
            where ($1::uuid is null or event_id = $1) and ($2::text is null or partition_key = $2)
              and ($3::text is null or event_type = $3)
            order by seq
            limit $4
        ), keys as (
            select partition_key, max(seq) as last from picked group by partition_key
        )
        select d.seq, d.event_id, d.attempts, p.seq is not null as "picked!"
        from keys k
        join mesh.outbox_dead d on d.partition_key = k.partition_key and d.seq <= k.last
        left join picked p on p.bucket_group = d.bucket_group and p.seq = d.seq
        order by d.seq
        "#,
        filter.event_id,
        filter.key,
        filter.event_type,
        ROWS_MAX + 1,
    )
    .fetch_all(pool)
    .await?;
    let picked = rows.iter().filter(|row| row.picked).count();
    let more = picked > usize::try_from(ROWS_MAX).unwrap_or(usize::MAX);
    let rows = if more { &rows[..rows.len() - 1] } else { &rows[..] };
    let lines: String = rows.iter().map(|row| line(row.seq, row.event_id, row.attempts)).collect();
    Ok(Dead {
        members: rows.iter().map(|row| row.seq).collect(),
        digest: Sha256::digest(lines).to_vec(),
        included: rows.iter().filter(|row| !row.picked).count(),
        more,
    })
}

fn line(seq: i64, event_id: Uuid, attempts: i32) -> String {
    format!("{seq} {event_id} {attempts}\n")
}

/// The digest of the rows as they are now; they are locked until the end of the transaction.
pub(crate) async fn digest_now(connection: &mut PgConnection, members: &[i64]) -> sqlx::Result<Vec<u8>> {
    let rows = sqlx::query!(
        "select seq, event_id, attempts from mesh.outbox_dead where seq = any ($1) order by seq for update",
        members,
    )
    .fetch_all(connection)
    .await?;
    let lines: String = rows.iter().map(|row| line(row.seq, row.event_id, row.attempts)).collect();
    Ok(Sha256::digest(lines).to_vec())
}

/// Puts the rows back at their old sequences, with all their attempts before them.
///
/// Those sequences lie below the floors of the relays, which say that nothing can appear there any more. The epoch of each
/// group grows, so that its holder reads it from the beginning and settles nothing that it read before; whoever takes the
/// group later starts from the beginning anyway.
pub(crate) async fn put_back(connection: &mut PgConnection, members: &[i64]) -> sqlx::Result<()> {
    sqlx::query!(
        r#"
        with returned as (
            delete from mesh.outbox_dead where seq = any ($1)
            returning bucket_group, seq, event_id, subject, event_type, partition_key, key_version, headers, payload,
                      occurred_at, created_at, error
        ), read_anew as (
            update mesh.outbox_lease set epoch = epoch + 1
            where bucket_group in (select bucket_group from returned)
        )
        insert into mesh.outbox
            (bucket_group, seq, event_id, subject, event_type, partition_key, key_version, headers, payload, occurred_at,
             created_at, attempts, last_error)
        overriding system value
        select bucket_group, seq, event_id, subject, event_type, partition_key, key_version, headers, payload, occurred_at,
               created_at, 0, error
        from returned
        "#,
        members,
    )
    .execute(connection)
    .await?;
    Ok(())
}
