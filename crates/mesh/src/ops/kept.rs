//! How many deliveries are kept as dead letters, by subscriber.

use sqlx::PgPool;

/// Counting stops here: a number that large says everything, and counting on would be work for nothing.
const COUNT_MAX: i64 = 10_000;

/// The numbers of one subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) subscriber: String,
    pub(crate) parked: u64,
    pub(crate) dead: u64,
}

/// Takes the numbers, up to ten thousand deliveries in all.
pub(super) async fn look(pool: &PgPool) -> sqlx::Result<Vec<Kept>> {
    let rows = sqlx::query!(
        r#"
        select subscriber, count(*) filter (where state = 'parked') as "parked!",
               count(*) filter (where state = 'dead') as "dead!"
        from (select subscriber, state from mesh.dead_letter where state in ('parked', 'dead') limit $1) kept
        group by subscriber order by subscriber
        "#,
        COUNT_MAX,
    )
    .fetch_all(pool)
    .await?;
    let kept = rows.into_iter().map(|row| Kept {
        subscriber: row.subscriber,
        parked: row.parked.unsigned_abs(),
        dead: row.dead.unsigned_abs(),
    });
    Ok(kept.collect())
}
