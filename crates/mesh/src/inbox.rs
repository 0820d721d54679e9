//! Which subscriber has settled which fact: the claim that makes a repeat a no-op.

use std::collections::HashSet;

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
    /// Somebody else has it in work at this moment; the next execution sees what became of it.
    Elsewhere,
}

/// Claims the delivery of a fact to a subscriber, unless an earlier fact of its key is kept as a dead letter. One that was
/// discarded is in nobody's way.
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
        where not exists (
            select from mesh.dead_letter where subscriber = $2 and partition_key = $3 and state <> 'discarded'
        )
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
                where subscriber = $2 and partition_key = $3 and state <> 'discarded'
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
        // The dead letter that was in the way has just been redriven or discarded.
        (false, None) => Ok(Claim::Elsewhere),
    }
}

/// One delivery of many that are claimed by one statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claimant<'a> {
    pub(crate) event_id: Uuid,
    pub(crate) subscriber: &'a str,
    pub(crate) key: &'a str,
}

/// Claims many deliveries, each as [`claim`] would; tells for each whether it is ours. What is not is left to a
/// transaction of its own, which finds out why.
pub(crate) async fn claim_all(connection: &mut PgConnection, claimants: &[Claimant<'_>]) -> sqlx::Result<Vec<bool>> {
    let ids: Vec<Uuid> = claimants.iter().map(|claimant| claimant.event_id).collect();
    let subscribers: Vec<&str> = claimants.iter().map(|claimant| claimant.subscriber).collect();
    let keys: Vec<&str> = claimants.iter().map(|claimant| claimant.key).collect();
    // In one order, so that two transactions that claim the same deliveries do not wait for each other crosswise.
    let claimed = sqlx::query!(
        r#"
        insert into mesh.inbox (event_id, subscriber)
        select c.event_id, c.subscriber
        from unnest($1::uuid[], $2::text[], $3::text[]) as c (event_id, subscriber, partition_key)
        where not exists (select from mesh.dead_letter l
                          where l.subscriber = c.subscriber and l.partition_key = c.partition_key
                            and l.state <> 'discarded')
        order by c.event_id, c.subscriber
        on conflict do nothing
        returning event_id, subscriber
        "#,
        &ids,
        &subscribers as &[&str],
        &keys as &[&str],
    )
    .fetch_all(connection)
    .await?;
    let claimed: HashSet<(Uuid, &str)> = claimed.iter().map(|row| (row.event_id, row.subscriber.as_str())).collect();
    Ok(claimants.iter().map(|claimant| claimed.contains(&(claimant.event_id, claimant.subscriber))).collect())
}

/// Gives claims of this transaction back.
pub(crate) async fn unclaim(connection: &mut PgConnection, claimants: &[Claimant<'_>]) -> sqlx::Result<()> {
    let ids: Vec<Uuid> = claimants.iter().map(|claimant| claimant.event_id).collect();
    let subscribers: Vec<&str> = claimants.iter().map(|claimant| claimant.subscriber).collect();
    sqlx::query!(
        r#"
        delete from mesh.inbox i
        using unnest($1::uuid[], $2::text[]) as c (event_id, subscriber)
        where i.event_id = c.event_id and i.subscriber = c.subscriber
        "#,
        &ids,
        &subscribers as &[&str],
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Records for many claimed deliveries why they changed nothing.
pub(crate) async fn record_no_effects(
    connection: &mut PgConnection,
    claimants: &[Claimant<'_>],
    reasons: &[&str],
) -> sqlx::Result<()> {
    let ids: Vec<Uuid> = claimants.iter().map(|claimant| claimant.event_id).collect();
    let subscribers: Vec<&str> = claimants.iter().map(|claimant| claimant.subscriber).collect();
    sqlx::query!(
        r#"
        update mesh.inbox i set no_effect = c.reason
        from unnest($1::uuid[], $2::text[], $3::text[]) as c (event_id, subscriber, reason)
        where i.event_id = c.event_id and i.subscriber = c.subscriber
        "#,
        &ids,
        &subscribers as &[&str],
        reasons as &[&str],
    )
    .execute(connection)
    .await?;
    Ok(())
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
