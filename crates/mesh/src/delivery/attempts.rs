//! Attempts that did not settle, counted durably. A first delivery that succeeds writes nothing here.

use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::Incoming;

/// Which execution of one subscriber for one message comes next, as far as this process knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The first, with nothing to count.
    First,
    /// To be counted before it starts: an earlier one failed here, or may have happened elsewhere.
    Count,
    /// Counted already as this one; what it met was an outage, or a version from the future, not a failure.
    Counted(u32),
}

impl Next {
    /// What to do when the message arrives.
    pub(crate) fn on_arrival(incoming: &Incoming) -> Self {
        if incoming.is_redelivery() { Self::Count } else { Self::First }
    }

    /// What comes after execution `attempt` that was no failure of the message.
    pub(super) fn again(attempt: u32) -> Self {
        if attempt == 1 { Self::First } else { Self::Counted(attempt) }
    }
}

/// Counts the start of a redelivery, before its message is decoded, and returns which execution it is. A message that
/// kills the process is counted this way.
///
/// When nothing was written down, one earlier execution is assumed: it may have been cut off.
pub(super) async fn begin(pool: &PgPool, event_id: Uuid, subscriber: &str) -> sqlx::Result<u32> {
    let attempts = sqlx::query_scalar!(
        r#"
        insert into mesh.delivery_attempt as a (event_id, subscriber, attempts)
        values ($1, $2, 2)
        on conflict (event_id, subscriber) do update set attempts = a.attempts + 1
        returning attempts
        "#,
        event_id,
        subscriber,
    )
    .fetch_one(pool)
    .await?;
    Ok(attempts.unsigned_abs())
}

/// Writes down that execution number `attempt` failed, and why.
pub(crate) async fn record_failure(
    pool: &PgPool,
    event_id: Uuid,
    subscriber: &str,
    attempt: u32,
    error: &str,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"
        insert into mesh.delivery_attempt as a (event_id, subscriber, attempts, history)
        values ($1, $2, $3,
                jsonb_build_array(jsonb_build_object('attempt', $3::integer, 'at', clock_timestamp(), 'error', $4::text)))
        on conflict (event_id, subscriber)
            do update set attempts = greatest(a.attempts, excluded.attempts), history = a.history || excluded.history
        "#,
        event_id,
        subscriber,
        i32::try_from(attempt).unwrap_or(i32::MAX),
        // PostgreSQL text holds no NUL.
        error.replace('\0', "\u{fffd}"),
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Forgets the attempts of a delivery that settled; part of its transaction.
pub(crate) async fn forget(connection: &mut PgConnection, event_id: Uuid, subscriber: &str) -> sqlx::Result<()> {
    sqlx::query!("delete from mesh.delivery_attempt where event_id = $1 and subscriber = $2", event_id, subscriber)
        .execute(connection)
        .await?;
    Ok(())
}
