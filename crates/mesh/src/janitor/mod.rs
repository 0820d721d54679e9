//! Removes what is no longer needed: published facts, settled deliveries, replies and attempts of the past.
//!
//! Whole partitions where there are any, else a bounded number of rows at a time; never anything that waits for a person.
//! Nobody waits for it longer than its short lock time-out, and what somebody else holds is left for the next time.

mod horizon;
mod removal;

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::broker::{Broker, STREAM};
use crate::clock::jittered;
use crate::config::Retention;
use crate::context::ServiceContext;
use crate::failpoints;
use crate::task_lease::{self, Task, TaskLease};
use crate::telemetry::metrics;
use horizon::{InboxTooShort, inbox_retention};
use removal::{Kept, Removed};

/// The pause after a round that left nothing to do.
const IDLE: Duration = Duration::from_secs(60);

/// The pause after one that did: somebody held a lock, or there was more than fits into a round.
const BUSY: Duration = Duration::from_secs(2);

/// Rows that are deleted by one statement.
const ROWS: i64 = 1_000;

/// Statements of one kind in one round.
const STATEMENTS: usize = 20;

/// The janitor of all replicas, while this one holds the task.
#[derive(Debug)]
pub(crate) struct Janitor {
    pool: PgPool,
    context: Arc<ServiceContext>,
    broker: Arc<Broker>,
    soft: CancellationToken,
    retention: Retention,
}

/// Why a round ended early.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error("the database did not answer ({0})")]
    Database(#[from] sqlx::Error),
    #[error("the process is stopping, or another replica has taken over")]
    NotOurs,
}

impl Janitor {
    pub(crate) fn new(
        pool: PgPool,
        context: Arc<ServiceContext>,
        broker: Arc<Broker>,
        soft: CancellationToken,
        retention: Retention,
    ) -> Self {
        Self { pool, context, broker, soft, retention }
    }

    /// Works in rounds until the soft token.
    pub(crate) async fn run(self) {
        let mut is_reachable = true;
        while !self.soft.is_cancelled() {
            let round = self.round().await;
            is_reachable = !matches!(round, Err(RoundError::Database(_)));
            let pause = match round {
                Ok(Removed::All) => IDLE,
                Ok(Removed::Some) => BUSY,
                Err(RoundError::NotOurs) => IDLE,
                Err(error) => {
                    metrics::janitor_failed("database");
                    tracing::warn!(%error, "what is no longer needed could not be removed");
                    IDLE
                }
            };
            tokio::select! {
                () = sleep(jittered(pause, &*self.context.clock)) => {}
                () = self.soft.cancelled() => {}
            }
        }
        // A database that did not answer a moment ago would only hold up the end.
        let owner = self.context.instance;
        if is_reachable && let Err(error) = task_lease::resign(&self.pool, Task::Janitor, owner).await {
            tracing::warn!(%error, "the janitor's task could not be given up; its lease runs out by itself");
        }
    }

    /// Removes what is due, as far as a round goes.
    async fn round(&self) -> Result<Removed, RoundError> {
        let Some(lease) = task_lease::hold(&self.pool, Task::Janitor, self.context.instance).await? else {
            return Ok(Removed::All);
        };
        let Retention { outbox_sent, idempotency, discarded, .. } = self.retention;
        let mut removed = self.partitions(Kept::OutboxSent, outbox_sent).await?;
        removed &= self.rows(lease, Kept::OutboxSent, outbox_sent).await?;
        removed &= self.rows(lease, Kept::Idempotency, idempotency).await?;
        removed &= self.rows(lease, Kept::Discarded, discarded).await?;
        removed &= self.rows(lease, Kept::Operations, discarded).await?;
        if let Some(inbox) = self.inbox_retention().await {
            removed &= self.partitions(Kept::Inbox, inbox).await?;
            removed &= self.rows(lease, Kept::Inbox, inbox).await?;
            removed &= self.rows(lease, Kept::Attempts, inbox).await?;
        }
        Ok(removed)
    }

    /// Drops the oldest partition that is due, one in a round, unless somebody reads it.
    async fn partitions(&self, kept: Kept, retention: Duration) -> Result<Removed, RoundError> {
        match removal::drop_partition(&self.pool, kept, retention).await {
            Ok(Some(name)) => {
                metrics::janitor_dropped(kept.name());
                tracing::info!(partition = name, "a partition was dropped");
                Ok(Removed::Some)
            }
            Ok(None) => Ok(Removed::All),
            Err(error) if removal::is_held(&error) => {
                metrics::janitor_failed("held");
                tracing::debug!(table = kept.name(), "a partition that is due is in use; it is tried again");
                Ok(Removed::Some)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes rows that are due, some at a time.
    async fn rows(&self, lease: TaskLease, kept: Kept, retention: Duration) -> Result<Removed, RoundError> {
        for _ in 0..STATEMENTS {
            self.go_on(lease).await?;
            let deleted = match removal::delete(&self.pool, kept, retention, ROWS).await {
                Err(error) if removal::is_held(&error) => {
                    metrics::janitor_failed("held");
                    return Ok(Removed::Some);
                }
                deleted => deleted?,
            };
            metrics::janitor_deleted(kept.name(), deleted);
            failpoints::hit("janitor.mid_delete");
            if deleted < ROWS.unsigned_abs() {
                return Ok(Removed::All);
            }
        }
        Ok(Removed::Some)
    }

    async fn go_on(&self, lease: TaskLease) -> Result<(), RoundError> {
        let held = task_lease::hold(&self.pool, Task::Janitor, self.context.instance).await?;
        if self.soft.is_cancelled() || held != Some(lease) { Err(RoundError::NotOurs) } else { Ok(()) }
    }

    /// How long settled deliveries are needed now; `None` while that is not known, or for ever.
    ///
    /// A stream that was told to keep its facts longer since the start is asked here, and what was configured for less gives way.
    async fn inbox_retention(&self) -> Option<Duration> {
        if !self.broker.events().is_connected() {
            return None;
        }
        let age = match stream_age(&self.broker).await {
            Ok(age) => age,
            Err(why) => {
                metrics::janitor_failed("stream");
                tracing::warn!(why, "nothing is removed from the inbox: how long the stream keeps a fact is not known");
                return None;
            }
        };
        inbox_retention(self.retention.inbox, age, self.retention.redrive_horizon).unwrap_or_else(|error| {
            metrics::janitor_failed("retention");
            tracing::error!(%error, "the inbox is kept longer than configured");
            error.needed
        })
    }
}

/// Whether the configured retention can be used: an inbox that forgets a delivery while its fact may come again would let an
/// effect happen twice. A stream that cannot be asked now is asked later, and until then nothing is removed from the inbox.
///
/// # Errors
/// [`InboxTooShort`].
pub(crate) async fn check(retention: Retention, broker: &Broker) -> Result<(), InboxTooShort> {
    if retention.inbox.is_none() || !broker.events().is_connected() {
        return Ok(());
    }
    match stream_age(broker).await {
        Ok(age) => inbox_retention(retention.inbox, age, retention.redrive_horizon).map(drop),
        Err(why) => {
            tracing::warn!(why, "the retention of the inbox cannot be checked yet");
            Ok(())
        }
    }
}

/// How long the stream keeps a fact; `None` is for ever.
async fn stream_age(broker: &Broker) -> Result<Option<Duration>, String> {
    let stream = broker.connection().jetstream.get_stream(STREAM).await;
    let stream = stream.map_err(|error| format!("stream {STREAM}: {error}"))?;
    Ok(Some(stream.cached_info().config.max_age).filter(|age| !age.is_zero()))
}
