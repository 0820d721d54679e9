//! What is written down before and after a letter is run again. What is written when it goes through is in the transaction of
//! the handler, see [`super::claim`].

use std::time::Duration;

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use super::claim::{Item, Letter};

/// Failures with the same signature in a row after which an operation stops by itself.
const FAILURES_IN_ROW_MAX: i32 = 5;

/// A letter as it was received, in front of its next execution.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) event_id: Uuid,
    pub(super) subscriber: String,
    pub(super) key: String,
    pub(super) reason: String,
    /// This execution counts already.
    pub(super) attempts: i32,
    pub(super) subject: String,
    pub(super) headers: String,
    pub(super) payload: Vec<u8>,
    pub(super) stream_sequence: i64,
    pub(super) kept_at: OffsetDateTime,
}

/// Whether a letter can be run now.
#[derive(Debug)]
pub(super) enum Begun {
    Kept(Box<Kept>),
    /// Settled: nothing is left to do.
    Gone,
    /// An earlier letter of its key has to go first.
    Waits(Uuid),
    /// This build has no such subscriber.
    Unheard(String),
    /// Another transaction has it.
    Elsewhere,
}

/// A failure as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    /// `parked` or `dead`; a discarded letter stays discarded.
    pub(super) state: &'static str,
    pub(super) reason: &'static str,
    pub(super) detail: String,
    /// Tried again by itself after this time.
    pub(super) retry_after: Option<Duration>,
    pub(super) signature: String,
}

impl Letter {
    /// Counts the execution before it begins, so that a letter that ends the process is counted too. `counted` when it was
    /// counted before and met an outage.
    pub(super) async fn begin(self, pool: &PgPool, subscribers: &[String], counted: bool) -> sqlx::Result<Begun> {
        let kept = sqlx::query_as!(
            Kept,
            r#"
            with locked as (
                select d.id from mesh.dead_letter d
                where d.id = $1 and d.subscriber = any ($2)
                  and not exists (select from mesh.dead_letter e
                                  where e.subscriber = d.subscriber and e.partition_key = d.partition_key
                                    and e.state <> 'discarded'
                                    and (e.stream_sequence, e.id) < (d.stream_sequence, d.id))
                for update of d skip locked
            ), begun as (
                update mesh.operation_item i set begun_at = clock_timestamp()
                from locked where i.operation_id = $4 and i.position = $5
            )
            update mesh.dead_letter d set attempts = d.attempts + case when $3 then 0 else 1 end
            from locked where d.id = locked.id
            returning d.event_id, d.subscriber, d.partition_key as key, d.reason, d.attempts, d.subject, d.headers, d.payload,
                      d.stream_sequence, d.parked_at as kept_at
            "#,
            self.id,
            subscribers,
            counted,
            self.item.map(|item| item.operation_id),
            self.item.map(|item| item.position),
        )
        .fetch_optional(pool)
        .await?;
        match kept {
            Some(kept) => Ok(Begun::Kept(Box::new(kept))),
            None => self.why_not(pool, subscribers).await,
        }
    }

    async fn why_not(self, pool: &PgPool, subscribers: &[String]) -> sqlx::Result<Begun> {
        let row = sqlx::query!(
            r#"
            select d.subscriber,
                   (select e.event_id from mesh.dead_letter e
                    where e.subscriber = d.subscriber and e.partition_key = d.partition_key and e.state <> 'discarded'
                      and (e.stream_sequence, e.id) < (d.stream_sequence, d.id)
                    order by e.stream_sequence desc, e.id desc limit 1) as waits_for
            from mesh.dead_letter d where d.id = $1
            "#,
            self.id,
        )
        .fetch_optional(pool)
        .await?;
        Ok(match row {
            None => Begun::Gone,
            Some(row) if !subscribers.contains(&row.subscriber) => Begun::Unheard(row.subscriber),
            Some(row) => row.waits_for.map_or(Begun::Elsewhere, Begun::Waits),
        })
    }

    /// Keeps the failure with the letter and tells the operation, which stops when one thing fails again and again. Returns
    /// false when the letter is gone or somebody else has it.
    pub(super) async fn fail(self, pool: &PgPool, failed: &Failed, build: &str) -> sqlx::Result<bool> {
        let recorded = sqlx::query_scalar!(
            r#"
            with locked as (
                select id from mesh.dead_letter where id = $1 for update skip locked
            ), letter as (
                update mesh.dead_letter d
                set state = case when d.state = 'discarded' then d.state else $2 end, reason = $3, detail = $4,
                    retry_at = clock_timestamp() + make_interval(secs => $5),
                    history = d.history || jsonb_build_array(jsonb_build_object(
                        'attempt', d.attempts, 'at', clock_timestamp(), 'error', $4::text, 'build', $6::text,
                        'operation', $7::uuid))
                from locked where d.id = locked.id
                returning d.id
            ), item as (
                update mesh.operation_item i set outcome = 'failed', detail = $4, ended_at = clock_timestamp()
                from letter where i.operation_id = $7 and i.position = $8 and i.outcome is null
                returning i.operation_id
            ), counted as (
                select o.operation_id, case when o.last_signature = $9 then o.failures_in_row + 1 else 1 end as failures
                from mesh.operation o join item on item.operation_id = o.operation_id
            ), operation as (
                update mesh.operation o
                set failures_in_row = c.failures, last_signature = $9,
                    state = case when stops then 'stopped' else o.state end,
                    stop_reason = case when stops then c.failures || ' failures in a row: ' || $9 else o.stop_reason end,
                    finished_at = case when stops then now() else o.finished_at end
                from counted c cross join lateral (select c.failures >= $10 as stops) s
                where o.operation_id = c.operation_id and o.state = 'running'
            )
            select count(*) = 1 as "recorded!" from letter
            "#,
            self.id,
            failed.state,
            failed.reason,
            plain(&failed.detail),
            failed.retry_after.map(|after| after.as_secs_f64()),
            build,
            self.item.map(|item| item.operation_id),
            self.item.map(|item| item.position),
            plain(&failed.signature),
            FAILURES_IN_ROW_MAX,
        )
        .fetch_one(pool)
        .await?;
        Ok(recorded)
    }

    /// Takes away a letter whose delivery turned out to be settled, under the id by which it was kept or by which it is read
    /// now, with its row in the inbox.
    pub(super) async fn remove_settled(self, pool: &PgPool, event_id: Uuid) -> sqlx::Result<()> {
        sqlx::query!(
            r#"
            with removed as (
                delete from mesh.dead_letter d
                where d.id = $1 and exists (
                    select from mesh.inbox i
                    where i.event_id in (d.event_id, $2) and i.subscriber = d.subscriber
                      and i.no_effect is distinct from 'dead_letter')
                returning d.event_id, d.subscriber
            )
            delete from mesh.inbox i using removed r
            where i.event_id = r.event_id and i.subscriber = r.subscriber and i.no_effect = 'dead_letter'
            "#,
            self.id,
            event_id,
        )
        .execute(pool)
        .await?;
        Ok(())
    }

    /// Tells the operation what became of a member that was not run.
    pub(super) async fn conclude(self, pool: &PgPool, outcome: &str, detail: Option<&str>) -> sqlx::Result<()> {
        let Some(Item { operation_id, position }) = self.item else { return Ok(()) };
        sqlx::query!(
            r#"
            update mesh.operation_item set outcome = $3, detail = $4, ended_at = clock_timestamp()
            where operation_id = $1 and position = $2 and outcome is null
            "#,
            operation_id,
            position,
            outcome,
            detail,
        )
        .execute(pool)
        .await?;
        Ok(())
    }
}

/// PostgreSQL text holds no NUL.
fn plain(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
