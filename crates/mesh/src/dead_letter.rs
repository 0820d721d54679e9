//! Deliveries that were given up or parked: kept with their bytes, looked at, run again, discarded.
//!
//! A delivery is kept in a transaction of its own, since a failed statement has poisoned the one in which the handler ran. It
//! is redriven in one transaction with the removal of its letter and of its row in the inbox: whatever is cut off in
//! between leaves it kept. A discarded letter stays too; it only blocks nobody any more.

mod claim;
mod filter;
mod operation;
mod preview;
mod read;
mod record;
mod redrive;
mod release;
mod runner;
mod signature;

pub(crate) use claim::Letter;
pub(crate) use filter::Filter;
pub(crate) use operation::{Action, Listed, OperationError, Order, Progress, TOKEN_SECONDS, insert_preview, stop};
pub(crate) use preview::{Preview, preview};
pub(crate) use read::{Page, Shown, list, show};
pub(crate) use redrive::Redriver;

use envelope::RawMessage;
use sqlx::PgPool;
use uuid::Uuid;

/// Everything about a delivery that is kept.
#[derive(Debug, Clone)]
pub(crate) struct DeadLetter<'a> {
    pub(crate) subscriber: &'a str,
    pub(crate) event_id: Uuid,
    pub(crate) event_type: &'a str,
    pub(crate) key: &'a str,
    pub(crate) correlation_id: Option<Uuid>,
    pub(crate) state: State,
    pub(crate) reason: &'a str,
    pub(crate) detail: &'a str,
    pub(crate) attempts: u32,
    pub(crate) behind: Option<Uuid>,
    pub(crate) raw: &'a RawMessage,
    pub(crate) stream_sequence: u64,
    pub(crate) build: &'a str,
}

/// Whether the delivery waits for something to change, or was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Parked,
    Dead,
}

impl State {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Parked => "parked",
            Self::Dead => "dead",
        }
    }
}

/// Keeps a delivery, and claims it in the inbox by the same statement: a delivery is either settled or kept, never both.
/// Returns whether it was kept; if not, it was settled or kept before, or by somebody else just now. The history of its
/// attempts moves along.
pub(crate) async fn keep(pool: &PgPool, letter: &DeadLetter<'_>) -> sqlx::Result<bool> {
    let headers = serde_json::to_string(&letter.raw.headers).map_err(|error| sqlx::Error::Encode(error.into()))?;
    let kept = sqlx::query!(
        r#"
        with claimed as (
            insert into mesh.inbox (event_id, subscriber, no_effect) values ($2, $1, 'dead_letter')
            on conflict do nothing
            returning event_id
        ), attempted as (
            delete from mesh.delivery_attempt where event_id = $2 and subscriber = $1 returning attempts, history
        )
        insert into mesh.dead_letter
            (subscriber, event_id, event_type, partition_key, correlation_id, state, reason, detail, attempts, history,
             behind_event, subject, headers, payload, stream_sequence, build)
        select $1, event_id, $3, $4, $5, $6, $7, $8,
               greatest($9, coalesce((select attempts from attempted), 0)),
               coalesce((select history from attempted), '[]'),
               $10, $11, $12, $13, $14, $15
        from claimed
        -- A letter may outlive its row in the inbox.
        on conflict (event_id, subscriber) do nothing
        "#,
        letter.subscriber,
        letter.event_id,
        text(letter.event_type),
        text(letter.key).chars().take(KEY_CHARS_MAX).collect::<String>(),
        letter.correlation_id,
        letter.state.as_str(),
        letter.reason,
        text(letter.detail),
        i32::try_from(letter.attempts).unwrap_or(i32::MAX),
        letter.behind,
        text(&letter.raw.subject),
        headers,
        letter.raw.body,
        i64::try_from(letter.stream_sequence).unwrap_or(i64::MAX),
        letter.build,
    )
    .execute(pool)
    .await?;
    Ok(kept.rows_affected() == 1)
}

/// The key is indexed, and a message that breaks the contract may carry one that no index entry holds.
const KEY_CHARS_MAX: usize = 256;

/// PostgreSQL text holds no NUL. The header list is JSON, where it is escaped, and the body is bytes: both stay exact.
fn text(value: &str) -> String {
    value.replace('\0', "\u{fffd}")
}
