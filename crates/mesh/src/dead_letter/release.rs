//! What goes on by itself: letters that were kept only because of an earlier one of their key, once nothing is before them.
//! The earlier one was redriven or discarded, or it went just when they were put behind it.

use sqlx::PgPool;

use super::claim::Letter;
use super::redrive::{BEHIND, End, Redriver};

/// Keys that one look finds.
const KEYS_MAX: i64 = 100;

/// The first letter of a key.
#[derive(Debug)]
struct First {
    id: i64,
    subscriber: String,
    key: String,
    /// It was kept because of another, it is due, and no operation is about to run it.
    is_free: bool,
}

impl Redriver {
    /// Runs everything whose way is free, each key in its order. Returns whether there was any.
    pub(super) async fn release(&self, is_stopping: impl Fn() -> bool) -> sqlx::Result<bool> {
        let free = free(&self.pool, &self.names()).await?;
        let is_any = !free.is_empty();
        for first in free {
            let mut next = Some(first);
            while let Some(first) = next.filter(|first| first.is_free && !is_stopping()) {
                next = match self.run_letter(Letter { id: first.id, item: None }, false).await? {
                    End::Settled => first_of(&self.pool, &first.subscriber, &first.key).await?,
                    // It has its time to be tried again, or is at work elsewhere.
                    End::Failed | End::Stays | End::Again { .. } => None,
                };
            }
        }
        Ok(is_any)
    }
}

/// The letters that nothing is before, the earliest first.
async fn free(pool: &PgPool, subscribers: &[String]) -> sqlx::Result<Vec<First>> {
    sqlx::query_as!(
        First,
        r#"
        select d.id, d.subscriber, d.partition_key as key, true as "is_free!"
        from mesh.dead_letter d
        where d.reason = 'behind' and d.state = 'parked' and d.subscriber = any ($1)
          and coalesce(d.retry_at, '-infinity') <= clock_timestamp()
          and not exists (select from mesh.dead_letter e
                          where e.subscriber = d.subscriber and e.partition_key = d.partition_key
                            and e.state <> 'discarded' and (e.stream_sequence, e.id) < (d.stream_sequence, d.id))
          and not exists (select from mesh.operation_item i join mesh.operation o on o.operation_id = i.operation_id
                          where i.member = d.id and i.outcome is null and o.state = 'running' and o.action = 'redrive')
        order by d.stream_sequence, d.id
        limit $2
        "#,
        subscribers,
        KEYS_MAX,
    )
    .fetch_all(pool)
    .await
}

/// The letter that is first in a key now.
async fn first_of(pool: &PgPool, subscriber: &str, key: &str) -> sqlx::Result<Option<First>> {
    sqlx::query_as!(
        First,
        r#"
        select d.id, d.subscriber, d.partition_key as key,
               d.reason = $3 and coalesce(d.retry_at, '-infinity') <= clock_timestamp()
               and not exists (select from mesh.operation_item i join mesh.operation o on o.operation_id = i.operation_id
                               where i.member = d.id and i.outcome is null and o.state = 'running'
                                 and o.action = 'redrive') as "is_free!"
        from mesh.dead_letter d
        where d.subscriber = $1 and d.partition_key = $2 and d.state <> 'discarded'
        order by d.stream_sequence, d.id
        limit 1
        "#,
        subscriber,
        key,
        BEHIND,
    )
    .fetch_optional(pool)
    .await
}
