//! Which subscriber has settled which fact: the claim that makes a repeat a no-op.

use sqlx::PgConnection;
use uuid::Uuid;

/// What the inbox says to a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Ours, if this transaction commits. A concurrent claim of the same delivery waits for that.
    Claimed,
    /// Settled before, or kept as a dead letter.
    Duplicate,
    /// This earlier fact of the same key is kept as a dead letter.
    Behind(Uuid),
}

/// Claims the delivery of a fact to a subscriber, unless an earlier fact of its key is kept as a dead letter.
pub(crate) async fn claim(
    connection: &mut PgConnection,
    event_id: Uuid,
    subscriber: &str,
    key: &str,
) -> sqlx::Result<Claim> {
    let claimed = sqlx::query!(
        r#"
        insert into mesh.inbox (event_id, subscriber)
        select $1, $2
        where not exists (select from mesh.dead_letter where subscriber = $2 and partition_key = $3)
        on conflict do nothing
        "#,
        event_id,
        subscriber,
        key,
    )
    .execute(&mut *connection)
    .await?;
    if claimed.rows_affected() == 1 {
        return Ok(Claim::Claimed);
    }
    why_not(connection, event_id, subscriber, key).await
}

/// A delivery that could not be claimed was settled or kept before, or waits behind another.
async fn why_not(connection: &mut PgConnection, event_id: Uuid, subscriber: &str, key: &str) -> sqlx::Result<Claim> {
    let row = sqlx::query!(
        r#"
        select exists (select from mesh.inbox where event_id = $1 and subscriber = $2) as "settled!",
               (select event_id from mesh.dead_letter
                where subscriber = $2 and partition_key = $3
                order by id desc limit 1) as last_kept
        "#,
        event_id,
        subscriber,
        key,
    )
    .fetch_one(connection)
    .await?;
    match (row.settled, row.last_kept) {
        (true, _) => Ok(Claim::Duplicate),
        (false, Some(event)) => Ok(Claim::Behind(event)),
        // The dead letter that was in the way has just been redriven: claimable, with the next execution.
        (false, None) => Err(sqlx::Error::RowNotFound),
    }
}

/// Records why a claimed delivery changed nothing.
pub(crate) async fn record_no_effect(
    connection: &mut PgConnection,
    event_id: Uuid,
    subscriber: &str,
    reason: &str,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update mesh.inbox set no_effect = $3 where event_id = $1 and subscriber = $2",
        event_id,
        subscriber,
        reason,
    )
    .execute(connection)
    .await?;
    Ok(())
}
