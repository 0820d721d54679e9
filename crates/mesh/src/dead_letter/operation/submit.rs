//! The beginning of an operation: the token against the set as it is now, then the record, then the work.

use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::super::preview::digest_now;
use super::{Action, OperationError, Order, Progress, RETENTION_DAYS};
use crate::outbox::retry;

/// Members per second, unless something else is asked for.
const RATE: u16 = 20;

/// Longest reason and name that are kept.
const WORDS_MAX: usize = 500;

impl Order {
    /// Writes the operation down and, but for a redrive, does it in the same transaction. Asked for again it is told how far
    /// the first one is.
    ///
    /// Must run in a task that nothing cancels.
    ///
    /// # Errors
    /// [`OperationError`]; nothing has been done then.
    pub(crate) async fn submit(&self, pool: &PgPool, action: Action) -> Result<Progress, OperationError> {
        self.check()?;
        let mut tx = pool.begin().await?;
        let is_new = match self.in_transaction(&mut tx, action).await {
            Ok(is_new) => is_new,
            Err(error) => {
                tx.rollback().await?;
                return Err(error);
            }
        };
        tx.commit().await?;
        Ok(Progress::of(pool, self.operation_id).await?.begun_now(is_new))
    }

    async fn in_transaction(&self, connection: &mut PgConnection, action: Action) -> Result<bool, OperationError> {
        let is_new = self.insert(connection, action).await?;
        if is_new {
            self.act(connection, action).await?;
        } else {
            self.compare(connection, action).await?;
        }
        Ok(is_new)
    }

    fn check(&self) -> Result<(), OperationError> {
        if self.reason.trim().is_empty() || self.who.trim().is_empty() {
            return Err(OperationError::Incomplete("`reason` and `who` say why and for whom it is done"));
        }
        if self.rate_per_second == Some(0) {
            return Err(OperationError::Incomplete("`rate_per_second` is at least 1"));
        }
        Ok(())
    }

    /// Returns false when there is an operation of that id.
    async fn insert(&self, connection: &mut PgConnection, action: Action) -> sqlx::Result<bool> {
        let is_done_at_once = action != Action::Redrive;
        let inserted = sqlx::query!(
            r#"
            with forgotten as (
                delete from mesh.operation where finished_at < now() - make_interval(days => $8)
            )
            insert into mesh.operation
                (operation_id, token, action, reason, requested_by, rate_per_second, state, finished_at)
            values ($1, $2, $3, $4, $5, $6, case when $7 then 'finished' else 'running' end,
                    case when $7 then now() end)
            on conflict do nothing
            "#,
            self.operation_id,
            self.token,
            action.as_str(),
            words(&self.reason),
            words(&self.who),
            i32::from(self.rate_per_second.unwrap_or(RATE)),
            is_done_at_once,
            RETENTION_DAYS,
        )
        .execute(connection)
        .await?;
        Ok(inserted.rows_affected() == 1)
    }

    /// The operation that goes by this id has to be this one.
    async fn compare(&self, connection: &mut PgConnection, action: Action) -> Result<(), OperationError> {
        let same = sqlx::query_scalar!(
            r#"
            select token = $2 and action = $3 as "same!" from mesh.operation where operation_id = $1
            "#,
            self.operation_id,
            self.token,
            action.as_str(),
        )
        .fetch_one(connection)
        .await?;
        if same { Ok(()) } else { Err(OperationError::Taken(self.operation_id)) }
    }

    async fn act(&self, connection: &mut PgConnection, action: Action) -> Result<(), OperationError> {
        let members = self.take_members(connection, action).await?;
        match action {
            Action::Redrive => self.insert_letters(connection, &members, None).await?,
            Action::Discard => {
                self.insert_letters(connection, &members, Some("discarded")).await?;
                self.discard(connection, &members).await?;
            }
            Action::Retry => {
                self.insert_rows(connection, &members).await?;
                retry::put_back(connection, &members).await?;
            }
        }
        tracing::info!(
            operation = %self.operation_id,
            action = action.as_str(),
            members = members.len(),
            reason = words(&self.reason),
            who = words(&self.who),
            "an operation was asked for"
        );
        Ok(())
    }

    /// Uses the token up, and holds the set against what was shown.
    async fn take_members(&self, connection: &mut PgConnection, action: Action) -> Result<Vec<i64>, OperationError> {
        let preview = sqlx::query!(
            r#"
            delete from mesh.operation_preview where token = $1 and action = $2
            returning members, digest, expires_at < clock_timestamp() as "expired!"
            "#,
            self.token,
            action.as_str(),
        )
        .fetch_optional(&mut *connection)
        .await?
        .ok_or(OperationError::UnknownToken(action))?;
        if preview.expired {
            return Err(OperationError::Expired);
        }
        let now = match action {
            // What is redriven is locked one by one.
            Action::Redrive => digest_now(connection, &preview.members, false).await?,
            Action::Discard => digest_now(connection, &preview.members, true).await?,
            Action::Retry => retry::digest_now(connection, &preview.members).await?,
        };
        if now == preview.digest { Ok(preview.members) } else { Err(OperationError::Changed) }
    }

    async fn insert_letters(
        &self,
        connection: &mut PgConnection,
        members: &[i64],
        outcome: Option<&str>,
    ) -> sqlx::Result<()> {
        sqlx::query!(
            r#"
            insert into mesh.operation_item
                (operation_id, position, member, event_id, subscriber, outcome, ended_at)
            select $1, m.position, d.id, d.event_id, d.subscriber, $3::text, case when $3::text is not null then now() end
            from unnest($2::bigint[]) with ordinality as m (id, position)
            join mesh.dead_letter d on d.id = m.id
            "#,
            self.operation_id,
            members,
            outcome,
        )
        .execute(connection)
        .await?;
        Ok(())
    }

    async fn insert_rows(&self, connection: &mut PgConnection, members: &[i64]) -> sqlx::Result<()> {
        sqlx::query!(
            r#"
            insert into mesh.operation_item (operation_id, position, member, event_id, outcome, ended_at)
            select $1, m.position, d.seq, d.event_id, 'returned', now()
            from unnest($2::bigint[]) with ordinality as m (seq, position)
            join mesh.outbox_dead d on d.seq = m.seq
            "#,
            self.operation_id,
            members,
        )
        .execute(connection)
        .await?;
        Ok(())
    }

    async fn discard(&self, connection: &mut PgConnection, members: &[i64]) -> sqlx::Result<()> {
        sqlx::query!(
            r#"
            update mesh.dead_letter
            set state = 'discarded', discarded_at = now(), discarded_by = $2, discard_reason = $3, retry_at = null
            where id = any ($1)
            "#,
            members,
            words(&self.who),
            words(&self.reason),
        )
        .execute(connection)
        .await?;
        Ok(())
    }
}

/// Ends a running operation where it is. Returns false when it does not run.
pub(crate) async fn stop(pool: &PgPool, operation_id: Uuid, who: &str) -> sqlx::Result<bool> {
    let stopped = sqlx::query!(
        r#"
        update mesh.operation set state = 'stopped', stop_reason = 'stopped by ' || $2::text, finished_at = now()
        where operation_id = $1 and state = 'running'
        "#,
        operation_id,
        words(who),
    )
    .execute(pool)
    .await?;
    Ok(stopped.rows_affected() == 1)
}

/// As text that the database takes.
fn words(text: &str) -> String {
    text.trim().replace('\0', "\u{fffd}").chars().take(WORDS_MAX).collect()
}
