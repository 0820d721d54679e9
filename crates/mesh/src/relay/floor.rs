//! The proof that nothing can appear below a sequence any more, so that scans need not start at the dead rows of the past.
//!
//! Evidence in two steps: read the last sequence drawn, *then* note every transaction that holds a write lock on the
//! outbox. A transaction that drew a sequence up to that value and is still open is among them, since the lock comes
//! before the draw. When none of them is left, every sequence up to the value is committed or gone.

use std::collections::HashSet;

use sqlx::PgPool;
use time::OffsetDateTime;

/// Evidence that is being gathered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Evidence {
    /// The last sequence that was drawn.
    drawn: i64,
    /// Transactions that may still commit a row up to it.
    writers: HashSet<String>,
}

impl Evidence {
    /// The proven sequence, once no noted writer is left.
    pub(super) fn proven(&self, open: &HashSet<String>) -> Option<i64> {
        self.writers.is_disjoint(open).then_some(self.drawn)
    }

    /// Whether this proof ends at the moment it began.
    pub(super) fn needs_no_wait(&self) -> bool {
        self.writers.is_empty()
    }
}

/// The last sequence that was drawn, and on which start of which server: after a crash or a failover the sequence may go
/// on from an earlier value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Drawn {
    pub(super) sequence: i64,
    pub(super) server: OffsetDateTime,
}

impl Drawn {
    pub(super) async fn now(pool: &PgPool) -> sqlx::Result<Self> {
        // `last_value` is 1 before the first draw; a floor of 1 would hide the first row.
        let row = sqlx::query!(
            r#"
            select case when is_called then last_value else 0 end as "sequence!", pg_postmaster_start_time() as "server!"
            from mesh.outbox_seq_seq
            "#
        )
        .fetch_one(pool)
        .await?;
        Ok(Self { sequence: row.sequence, server: row.server })
    }

    /// Begins a proof for this sequence. The locks are read by a statement of their own, after the sequence: in one
    /// statement the planner could take them first.
    pub(super) async fn evidence(self, pool: &PgPool) -> sqlx::Result<Evidence> {
        Ok(Evidence { drawn: self.sequence, writers: writers(pool).await? })
    }
}

/// Transactions with a write lock on the outbox. A prepared transaction is listed under `-1/...` until it ends.
pub(super) async fn writers(pool: &PgPool) -> sqlx::Result<HashSet<String>> {
    let rows = sqlx::query_scalar!(
        r#"
        select virtualtransaction as "writer!"
        from pg_locks
        where locktype = 'relation' and relation = 'mesh.outbox'::regclass and mode = 'RowExclusiveLock'
          and database = (select oid from pg_database where datname = current_database())
        "#
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().collect())
}

/// The lowest sequence above `floors` that is still in each group; what the floor may not pass.
pub(super) async fn lowest_remaining(
    pool: &PgPool,
    groups: &[i16],
    floors: &[i64],
) -> sqlx::Result<Vec<(i16, Option<i64>)>> {
    sqlx::query!(
        r#"
        select f.bucket_group as "bucket_group!", o.seq as "seq?"
        from unnest($1::smallint[], $2::bigint[]) as f (bucket_group, floor)
        left join lateral (
            select seq from mesh.outbox where bucket_group = f.bucket_group and seq > f.floor order by seq limit 1
        ) o on true
        "#,
        groups,
        floors,
    )
    .map(|row| (row.bucket_group, row.seq))
    .fetch_all(pool)
    .await
}

/// The new floor of a group, from what is proven and what is still there.
pub(super) fn advanced(floor: i64, proven: i64, lowest_remaining: Option<i64>) -> i64 {
    let limit = lowest_remaining.map_or(proven, |seq| proven.min(seq - 1));
    floor.max(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> HashSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_sequence_is_final_when_every_writer_of_the_time_has_ended() {
        let evidence = Evidence { drawn: 40, writers: set(&["3/7", "5/2"]) };
        assert_eq!(evidence.proven(&set(&["3/7"])), None);
        assert_eq!(evidence.proven(&set(&["3/8", "9/1"])), Some(40), "later transactions draw higher sequences");
    }

    #[test]
    fn a_floor_never_passes_a_row_that_is_still_there() {
        assert_eq!(advanced(0, 40, Some(12)), 11);
        assert_eq!(advanced(0, 40, None), 40);
        assert_eq!(advanced(0, 40, Some(90)), 40, "a later row says nothing about what is below it");
        assert_eq!(advanced(25, 20, None), 25, "a floor never falls");
    }
}
