//! Deliveries of a service with a database: the claim, the handler and its facts are one commit.

use std::sync::Arc;

use sqlx::PgPool;
use uuid::Uuid;

use super::execution::Execution;
use super::registry::Prepared;
use super::{Begun, Broken, Ended, Inbox, Next, Outage, Unit, Verdict, attempts, group};
use crate::context::ServiceContext;
use crate::dead_letter::{self, DeadLetter};
use crate::failpoints;
use crate::failure::{Failure, database_error, is_outage};
use crate::inbox::{self, Claim};
use crate::subscriber::Handled;
use crate::tx::{Cause, Tx};

/// The tables of the schema `mesh`.
#[derive(Debug, Clone)]
pub(crate) struct SqlInbox {
    pub(crate) pool: PgPool,
    pub(crate) context: Arc<ServiceContext>,
}

impl SqlInbox {
    pub(crate) fn new(pool: PgPool, context: Arc<ServiceContext>) -> Self {
        Self { pool, context }
    }
}

impl Inbox for SqlInbox {
    type Context = Tx;

    async fn begin(&self, next: Next, event_id: Uuid, subscriber: &'static str) -> Result<Begun, Outage> {
        // A claim of another process is a lock on a row, which its end releases.
        Ok(Begun::Attempt(match next {
            Next::First => 1,
            Next::Count => attempts::begin(&self.pool, event_id, subscriber).await?,
            Next::Counted(attempt) => attempt,
        }))
    }

    async fn record_failure(
        &self,
        event_id: Uuid,
        subscriber: &'static str,
        attempt: u32,
        error: &str,
    ) -> Result<(), Outage> {
        Ok(attempts::record_failure(&self.pool, event_id, subscriber, attempt, error).await?)
    }

    async fn keep(&self, letter: &DeadLetter<'_>) -> Result<bool, Outage> {
        Ok(dead_letter::keep(&self.pool, letter).await?)
    }

    async fn run(self, execution: Execution, handler: Box<dyn Prepared>) -> Ended {
        execution.transaction(&self, handler).await
    }

    const SHARES: bool = true;

    async fn run_together(self, units: Vec<Unit>) -> Result<Vec<Option<Verdict>>, Broken> {
        group::transaction(&self, &units).await
    }

    async fn probe(&self) -> Result<(), Outage> {
        sqlx::query_scalar!("select 1 as one").fetch_one(&self.pool).await?;
        Ok(())
    }
}

impl From<sqlx::Error> for Outage {
    /// Outside the handler's transaction the runtime's own statements fail only with the database.
    fn from(error: sqlx::Error) -> Self {
        Self(error.to_string())
    }
}

/// What to do with the transaction.
enum Step {
    Commit(Verdict),
    Stop(Ended),
}

impl Execution {
    async fn transaction(self, inbox: &SqlInbox, prepared: Box<dyn Prepared>) -> Ended {
        let cause = match self.incoming.metadata() {
            Ok(metadata) => Cause::from(metadata),
            Err(error) => return Ended::Undecodable(error.clone()),
        };
        let mut tx = match Tx::begin_reaction(&inbox.pool, &inbox.context, self.name, cause).await {
            Ok(tx) => tx,
            Err(error) => return Ended::Outage(error.to_string()),
        };
        match self.in_transaction(&mut tx, prepared).await {
            Ok(Step::Commit(verdict)) => {
                failpoints::hit("consume.before_commit");
                match tx.commit().await {
                    Ok(()) => Ended::Settled(verdict),
                    Err(error) => from_database(error),
                }
            }
            Ok(Step::Stop(ended)) => {
                let ended = roll_back(tx, ended).await;
                self.forget_repeat(inbox, &ended).await;
                ended
            }
            Err(failure) => roll_back(tx, from_failure(failure)).await,
        }
    }

    /// A redelivery was counted before it was found settled.
    async fn forget_repeat(&self, inbox: &SqlInbox, ended: &Ended) {
        if self.attempt == 1 || !matches!(ended, Ended::Settled(Verdict::Duplicate)) {
            return;
        }
        let forgotten = match inbox.pool.acquire().await {
            Ok(mut connection) => attempts::forget(&mut connection, self.incoming.id(), self.name).await,
            Err(error) => Err(error),
        };
        if let Err(error) = forgotten {
            tracing::debug!(%error, "a counted attempt of a settled delivery stays behind");
        }
    }

    async fn in_transaction(&self, tx: &mut Tx, prepared: Box<dyn Prepared>) -> Result<Step, Failure> {
        let event_id = self.incoming.id();
        let claim = match &self.letter {
            None => inbox::claim(tx, event_id, self.name, self.incoming.key()).await?,
            Some(letter) => letter.claim(tx, self.name, &self.incoming).await?,
        };
        match claim {
            Claim::Claimed => {}
            Claim::Duplicate => return Ok(Step::Stop(Ended::Settled(Verdict::Duplicate))),
            Claim::Behind(event) => return Ok(Step::Stop(Ended::Behind(event))),
            Claim::Elsewhere => return Ok(Step::Stop(Ended::Elsewhere)),
        }
        failpoints::hit("consume.after_inbox_insert");
        let handled = prepared.run(tx).await?;
        failpoints::hit("consume.after_effect_before_outbox");
        if self.attempt > 1 {
            attempts::forget(tx, event_id, self.name).await?;
        }
        if let Some(letter) = &self.letter {
            letter.settle(tx).await?;
        }
        if let Handled::NoEffect(reason) = handled {
            inbox::record_no_effect(tx, event_id, self.name, reason).await?;
        }
        Ok(Step::Commit(handled.into()))
    }
}

async fn roll_back(tx: Tx, ended: Ended) -> Ended {
    match tx.rollback().await {
        Ok(()) => ended,
        // The connection is gone, and with it the transaction. Whatever the handler said, it said it without a database.
        Err(error) => Ended::Outage(error.to_string()),
    }
}

/// An error of the database, by what it says about the work.
fn from_database(error: sqlx::Error) -> Ended {
    if is_outage(&error) { Ended::Outage(error.to_string()) } else { Ended::Failed(Failure::from(error)) }
}

/// A handler's failure; an outage under it is no failure of the handler.
fn from_failure(failure: Failure) -> Ended {
    match database_error(failure.error()) {
        Some(database) if is_outage(database) => Ended::Outage(failure.to_string()),
        _ => Ended::Failed(failure),
    }
}
