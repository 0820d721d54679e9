//! How much waits, how long, and what was given up: the numbers behind the gauges.

use std::time::Duration;

use sqlx::PgPool;

/// Counting stops here: a gauge needs no exact number of a backlog that deep, and counting it would slow it down.
const COUNT_MAX: i64 = 1_000_000;

/// The same for dead letters. Somebody who has this many of them does not need to know how many more there are.
const LETTERS_MAX: i64 = 100_000;

/// The numbers of one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gauges {
    /// Rows not yet acknowledged, at most a million.
    pub(crate) pending: u64,
    /// Age of the oldest of them.
    pub(crate) oldest: Duration,
    /// Rows that the relay gave up.
    pub(crate) failed: u64,
    /// Deliveries that were parked, at most 100,000.
    pub(crate) parked: u64,
    /// Deliveries that were given up, at most 100,000.
    pub(crate) dead: u64,
}

/// Takes the numbers. The oldest row of each group is the one with its lowest sequence, so no scan is needed for it. The
/// letters are counted in an index by state, so that what was discarded costs nothing.
pub(crate) async fn gauges(pool: &PgPool) -> sqlx::Result<Gauges> {
    let row = sqlx::query!(
        r#"
        select (select count(*) from (select from mesh.outbox limit $1) o) as "pending!",
               coalesce((select extract(epoch from clock_timestamp() - min(first.created_at))
                         from (select bucket_group from mesh.outbox_lease) g
                         cross join lateral (select created_at from mesh.outbox o
                                             where o.bucket_group = g.bucket_group order by seq limit 1) first),
                        0)::float8 as "oldest!",
               (select count(*) from mesh.outbox_dead) as "failed!",
               (select count(*) from (select from mesh.dead_letter where state = 'parked' limit $2) p) as "parked!",
               (select count(*) from (select from mesh.dead_letter where state = 'dead' limit $2) d) as "dead!"
        "#,
        COUNT_MAX,
        LETTERS_MAX,
    )
    .fetch_one(pool)
    .await?;
    Ok(Gauges {
        pending: row.pending.unsigned_abs(),
        oldest: Duration::try_from_secs_f64(row.oldest).unwrap_or_default(),
        failed: row.failed.unsigned_abs(),
        parked: row.parked.unsigned_abs(),
        dead: row.dead.unsigned_abs(),
    })
}
