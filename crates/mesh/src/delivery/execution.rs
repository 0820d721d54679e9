//! One execution of a handler: the claim, the handler, the facts, one commit. Runs in a task that nothing cancels.

use std::sync::Arc;
use std::time::Duration;

use envelope::DecodeError;
use tokio::task::{JoinError, JoinHandle};
use uuid::Uuid;

use super::registry::Prepared;
use super::{Delivery, ErasedSubscriber, Incoming, Verdict, attempts};
use crate::clock::jittered;
use crate::failpoints;
use crate::failure::{Backoff, Failure, database_error, is_outage};
use crate::inbox::{self, Claim};
use crate::subscriber::Handled;
use crate::tx::{Cause, Tx};

/// How an execution ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// Committed, or found settled.
    Settled(Verdict),
    /// An earlier fact of the key is in the way.
    Behind(Uuid),
    /// The database went away; nothing can be said about the message.
    Outage(String),
    /// The message is none that the subscriber can read.
    Undecodable(DecodeError),
    /// The handler did not settle it.
    Failed(Failure),
}

/// Fresh tries after losing a race for the same rows, before it counts as a failed attempt.
const CONFLICT_TRIES: u32 = 5;

/// Delays between those tries.
const CONFLICT_BACKOFF: Backoff = Backoff { first: Duration::from_millis(5), longest: Duration::from_millis(80) };

/// Executes the handler, again from a fresh read when another transaction won a race.
pub(super) async fn execute(
    delivery: &Delivery,
    subscriber: &Arc<dyn ErasedSubscriber>,
    incoming: &Arc<Incoming>,
    attempt: u32,
) -> Ended {
    let mut tries = 0;
    loop {
        let ended = guarded(delivery, subscriber, incoming, attempt).await;
        tries += 1;
        match ended {
            Ended::Failed(Failure::Conflict(_)) if tries < CONFLICT_TRIES => {
                let pause = jittered(CONFLICT_BACKOFF.delay(tries), &*delivery.context.clock);
                tokio::time::sleep(pause).await;
            }
            ended => return ended,
        }
    }
}

/// Runs one transaction in its own task: a panic is caught there, and a handler that takes too long loses its slot but is
/// not cut off inside its transaction. If it commits after all, the redelivery finds it settled.
async fn guarded(
    delivery: &Delivery,
    subscriber: &Arc<dyn ErasedSubscriber>,
    incoming: &Arc<Incoming>,
    attempt: u32,
) -> Ended {
    let timeout = subscriber.policy().timeout;
    let prepared = match Arc::clone(subscriber).prepare(incoming.raw(), attempt) {
        Ok(prepared) => prepared,
        Err(error) => return Ended::Undecodable(error),
    };
    let execution = Execution { name: subscriber.name(), incoming: Arc::clone(incoming), attempt };
    let running = delivery.running.enter(incoming.id(), subscriber.name());
    let work = execution.transaction(delivery.clone(), prepared);
    let work = async move {
        let _running = running;
        work.await
    };
    let mut task = tokio::spawn(tracing::Instrument::in_current_span(work));
    match tokio::time::timeout(timeout, &mut task).await {
        Ok(Ok(ended)) => ended,
        Ok(Err(error)) => Ended::Failed(Failure::Retry(panicked(error))),
        Err(_) => {
            abort_late(task);
            Ended::Failed(Failure::Retry(anyhow::anyhow!("the handler took longer than {timeout:?}")))
        }
    }
}

/// How long an execution that has lost its slot may still take.
const GRACE: Duration = Duration::from_secs(60);

/// Takes the connection from a handler that never returns. By then its BEGIN is long done, and the server has ended the
/// session of a handler that waits without a statement; what is dropped is rolled back.
fn abort_late(task: JoinHandle<Ended>) {
    tokio::spawn(async move {
        tokio::time::sleep(GRACE).await;
        task.abort();
    });
}

fn panicked(error: JoinError) -> anyhow::Error {
    let Ok(panic) = error.try_into_panic() else { return anyhow::anyhow!("the handler's task was cancelled") };
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    anyhow::anyhow!("the handler panicked: {}", text.as_deref().unwrap_or("no message"))
}

/// What one transaction is about.
struct Execution {
    name: &'static str,
    incoming: Arc<Incoming>,
    attempt: u32,
}

/// What to do with the transaction.
enum Step {
    Commit(Verdict),
    Stop(Ended),
}

impl Execution {
    async fn transaction(self, delivery: Delivery, prepared: Box<dyn Prepared>) -> Ended {
        let cause = match self.incoming.metadata() {
            Ok(metadata) => Cause::from(metadata),
            Err(error) => return Ended::Undecodable(error.clone()),
        };
        let mut tx = match Tx::begin_reaction(&delivery.pool, &delivery.context, self.name, cause).await {
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
                self.forget_repeat(&delivery, &ended).await;
                ended
            }
            Err(failure) => roll_back(tx, from_failure(failure)).await,
        }
    }

    /// A redelivery was counted before it was found settled.
    async fn forget_repeat(&self, delivery: &Delivery, ended: &Ended) {
        if self.attempt == 1 || !matches!(ended, Ended::Settled(Verdict::Duplicate)) {
            return;
        }
        let forgotten = match delivery.pool.acquire().await {
            Ok(mut connection) => attempts::forget(&mut connection, self.incoming.id(), self.name).await,
            Err(error) => Err(error),
        };
        if let Err(error) = forgotten {
            tracing::debug!(%error, "a counted attempt of a settled delivery stays behind");
        }
    }

    async fn in_transaction(&self, tx: &mut Tx, prepared: Box<dyn Prepared>) -> Result<Step, Failure> {
        let event_id = self.incoming.id();
        match inbox::claim(tx, event_id, self.name, self.incoming.key()).await? {
            Claim::Claimed => {}
            Claim::Duplicate => return Ok(Step::Stop(Ended::Settled(Verdict::Duplicate))),
            Claim::Behind(event) => return Ok(Step::Stop(Ended::Behind(event))),
        }
        failpoints::hit("consume.after_inbox_insert");
        let handled = prepared.run(tx).await?;
        failpoints::hit("consume.after_effect_before_outbox");
        if self.attempt > 1 {
            attempts::forget(tx, event_id, self.name).await?;
        }
        match handled {
            Handled::Effect => Ok(Step::Commit(Verdict::Handled)),
            Handled::Compensated(action) => Ok(Step::Commit(Verdict::Compensated(action))),
            Handled::NoEffect(reason) => {
                inbox::record_no_effect(tx, event_id, self.name, reason).await?;
                Ok(Step::Commit(Verdict::NoEffect(reason)))
            }
        }
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
    let (Failure::Retry(error) | Failure::Conflict(error) | Failure::Reject(error)) = &failure;
    match database_error(error) {
        Some(database) if is_outage(database) => Ended::Outage(failure.to_string()),
        _ => Ended::Failed(failure),
    }
}
