//! The claim of a kept delivery, inside the transaction of its handler.

use anyhow::anyhow;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::delivery::Incoming;
use crate::failpoints;
use crate::failure::Failure;
use crate::inbox::Claim;

/// A letter that is being run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(super) id: i64,
    /// The place in an operation; none when the letter goes on by itself.
    pub(super) item: Option<Item>,
}

/// One member of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) operation_id: Uuid,
    pub(super) position: i32,
}

/// What the lock on a letter yields.
struct Locked {
    key: String,
    stream_sequence: i64,
}

impl Letter {
    /// Takes the letter and its row in the inbox away and claims the delivery in their place, all if this transaction commits.
    ///
    /// # Errors
    /// A rejection when the inbox does not remember the delivery any more: nothing would tell a repeat from the first.
    pub(crate) async fn claim(
        &self,
        connection: &mut PgConnection,
        subscriber: &str,
        incoming: &Incoming,
    ) -> Result<Claim, Failure> {
        let Some(locked) = self.lock(connection).await? else {
            return Ok(if self.is_kept(connection).await? { Claim::Elsewhere } else { Claim::Duplicate });
        };
        // A build that reads what the one before could not finds another key than the one under which it was kept.
        let keys = [locked.key, incoming.key().to_owned()];
        if let Some(event) = self.earlier(connection, subscriber, &keys, locked.stream_sequence).await? {
            return Ok(Claim::Behind(event));
        }
        let was_remembered = self.remove(connection).await?;
        let is_claimed = insert_claim(connection, incoming.id(), subscriber).await?;
        failpoints::hit("redrive.after_requeue");
        match (was_remembered, is_claimed) {
            (true, true) => Ok(Claim::Claimed),
            (_, false) => Ok(Claim::Duplicate),
            (false, true) => Err(Failure::Reject(anyhow!("the inbox does not remember this delivery any more"))),
        }
    }

    /// Nothing when another transaction has it, or it is gone.
    async fn lock(&self, connection: &mut PgConnection) -> sqlx::Result<Option<Locked>> {
        sqlx::query_as!(
            Locked,
            r#"
            select partition_key as key, stream_sequence from mesh.dead_letter where id = $1 for update skip locked
            "#,
            self.id,
        )
        .fetch_optional(connection)
        .await
    }

    async fn is_kept(&self, connection: &mut PgConnection) -> sqlx::Result<bool> {
        sqlx::query_scalar!(r#"select exists (select from mesh.dead_letter where id = $1) as "kept!""#, self.id)
            .fetch_one(connection)
            .await
    }

    /// The letter right before this one in the order of its key, which is that of the stream.
    async fn earlier(
        &self,
        connection: &mut PgConnection,
        subscriber: &str,
        keys: &[String],
        stream_sequence: i64,
    ) -> sqlx::Result<Option<Uuid>> {
        sqlx::query_scalar!(
            r#"
            select event_id from mesh.dead_letter
            where subscriber = $1 and partition_key = any ($2) and state <> 'discarded'
              and (stream_sequence, id) < ($3, $4)
            order by stream_sequence desc, id desc
            limit 1
            "#,
            subscriber,
            keys,
            stream_sequence,
            self.id,
        )
        .fetch_optional(connection)
        .await
    }

    /// Returns whether the inbox still said that the delivery is kept.
    async fn remove(&self, connection: &mut PgConnection) -> sqlx::Result<bool> {
        let marks = sqlx::query!(
            r#"
            with removed as (
                delete from mesh.dead_letter where id = $1 returning event_id, subscriber
            )
            delete from mesh.inbox i using removed r
            where i.event_id = r.event_id and i.subscriber = r.subscriber and i.no_effect = 'dead_letter'
            "#,
            self.id,
        )
        .execute(connection)
        .await?;
        Ok(marks.rows_affected() == 1)
    }

    /// Tells the operation, in the transaction of the handler: it is redriven if and only if the operation says so.
    pub(crate) async fn settle(&self, connection: &mut PgConnection) -> sqlx::Result<()> {
        let Some(Item { operation_id, position }) = self.item else { return Ok(()) };
        sqlx::query!(
            r#"
            with ended as (
                update mesh.operation_item set outcome = 'redriven', detail = null, ended_at = clock_timestamp()
                where operation_id = $1 and position = $2
            )
            update mesh.operation set failures_in_row = 0, last_signature = null where operation_id = $1
            "#,
            operation_id,
            position,
        )
        .execute(connection)
        .await?;
        Ok(())
    }
}

async fn insert_claim(connection: &mut PgConnection, event_id: Uuid, subscriber: &str) -> sqlx::Result<bool> {
    let claimed = sqlx::query!(
        "insert into mesh.inbox (event_id, subscriber) values ($1, $2) on conflict do nothing",
        event_id,
        subscriber,
    )
    .execute(connection)
    .await?;
    Ok(claimed.rows_affected() == 1)
}
