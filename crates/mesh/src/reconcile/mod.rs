//! Compares what the outbox has sent with what the stream holds, and publishes again what the stream has lost.
//!
//! An acknowledged fact can be lost: a server comes back with an older copy of its store, a stream is deleted and made
//! anew, a disk forgets. The service still has the fact, and the place that the stream gave it. What is not there any
//! more goes back into the outbox, and the relay publishes it as it does everything else: under its own id, by the rule of
//! the acknowledgement. Inboxes let no effect happen twice, so publishing too much is harmless and publishing too little
//! is not.

mod cause;
mod comparison;
mod sent;
pub(crate) mod state;
mod stored;

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use time::OffsetDateTime;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::broker::Broker;
use crate::clock::jittered;
use crate::context::ServiceContext;
use crate::failure::Backoff;
use crate::task_lease::{self, Task, TaskLease};
use crate::telemetry::metrics;
use cause::{Cause, Moment};
use comparison::{Comparison, ComparisonError};
use state::{Progress, State};
use stored::{Look, LookError};

/// How often the lease is renewed, the stream is looked at and requests are seen.
const TICK: Duration = Duration::from_secs(2);

/// Pauses after a comparison that failed.
const FAILED: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };

/// When facts that were put back are looked at again. A server that remembers the id of a message that it has lost takes
/// the fact again only when its duplicate window has passed.
const AGAIN: Backoff = Backoff { first: Duration::from_secs(10), longest: Duration::from_secs(300) };

/// Compares for all replicas, while this one holds the task.
#[derive(Debug)]
pub(crate) struct Reconciler {
    pool: PgPool,
    context: Arc<ServiceContext>,
    broker: Arc<Broker>,
    soft: CancellationToken,
    settings: Settings,
    /// The lease under which this replica compared last.
    compared_under: Option<TaskLease>,
    /// How often the connection had been lost then.
    disconnects: u64,
    /// Comparisons in a row that failed.
    failures: u32,
    /// Comparisons in a row that put something back.
    repeats: u32,
}

/// How often, and how far back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// The time between comparisons that nothing gives cause for.
    pub(crate) every: Duration,
    /// How long the service keeps what it has sent.
    pub(crate) kept: Duration,
}

/// Why a tick came to nothing.
#[derive(Debug, thiserror::Error)]
enum TickError {
    #[error("the database did not answer ({0})")]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Look(#[from] LookError),
}

impl Reconciler {
    pub(crate) fn new(
        pool: PgPool,
        context: Arc<ServiceContext>,
        broker: Arc<Broker>,
        soft: CancellationToken,
        settings: Settings,
    ) -> Self {
        let disconnects = broker.events().disconnects();
        Self { pool, context, broker, soft, settings, compared_under: None, disconnects, failures: 0, repeats: 0 }
    }

    /// Looks at the stream every two seconds and compares when there is cause, until the soft token.
    pub(crate) async fn run(mut self) {
        let soft = self.soft.clone();
        let mut is_reachable = true;
        while !soft.is_cancelled() {
            let ticked = self.tick().await;
            is_reachable = !matches!(ticked, Err(TickError::Database(_)));
            if let Err(error) = ticked {
                tracing::debug!(%error, "the outbox is not compared with the stream");
            }
            tokio::select! {
                () = sleep(jittered(TICK, &*self.context.clock)) => {}
                () = soft.cancelled() => {}
            }
        }
        // A database that did not answer a moment ago would only hold up the end.
        let owner = self.context.instance;
        if is_reachable && let Err(error) = task_lease::resign(&self.pool, Task::Reconcile, owner).await {
            tracing::warn!(%error, "the task of comparing could not be given up; its lease runs out by itself");
        }
    }

    /// Compares, when this replica is the one to do it and there is cause.
    async fn tick(&mut self) -> Result<(), TickError> {
        let state = state::load(&self.pool).await?;
        metrics::reconciled(state.checked(), state.verified_seconds_ago());
        let Some(lease) = task_lease::hold(&self.pool, Task::Reconcile, self.context.instance).await? else {
            return Ok(());
        };
        let disconnects = self.broker.events().disconnects();
        if !self.broker.events().is_connected() {
            return Ok(());
        }
        if !sent::is_any(&self.pool).await? {
            return self.nothing_sent(&state).await;
        }
        let look = stored::look(&self.broker).await?;
        match cause::due(&state, look, self.moment(lease, disconnects)) {
            Some(cause) => {
                self.disconnects = disconnects;
                self.compare(cause, &state, look, lease).await?;
            }
            None if self.failures == 0 => state::saw(&self.pool, look).await?,
            None => {}
        }
        Ok(())
    }

    /// A service that has said nothing has nothing to lose; whoever asks gets an answer all the same.
    async fn nothing_sent(&self, state: &State) -> Result<(), TickError> {
        if state.is_requested() {
            state::begin(&self.pool, Cause::Request).await?;
            state::finish(&self.pool, Progress::default(), None, state.now).await?;
        }
        Ok(())
    }

    fn moment(&self, lease: TaskLease, disconnects: u64) -> Moment {
        Moment {
            has_compared: self.compared_under == Some(lease),
            has_reconnected: disconnects != self.disconnects,
            pause: (self.failures > 0).then(|| FAILED.delay(self.failures)),
            again_after: (self.repeats > 0).then(|| AGAIN.delay(self.repeats)),
            every: self.settings.every,
        }
    }

    async fn compare(&mut self, cause: Cause, state: &State, look: Look, lease: TaskLease) -> Result<(), TickError> {
        state::begin(&self.pool, cause).await?;
        let kept = look.max_age.map_or(self.settings.kept, |age| age.min(self.settings.kept));
        let expired = state.now.checked_sub(kept.try_into().unwrap_or(time::Duration::MAX));
        let expired = expired.unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let mut comparison = Comparison {
            pool: &self.pool,
            broker: &self.broker,
            soft: &self.soft,
            lease,
            look,
            expired,
            verified: state.verified_at.unwrap_or(expired),
            now: state.now,
            progress: Progress::default(),
        };
        let ended = comparison.run(cause.is_suspicious()).await;
        let progress = comparison.progress;
        metrics::republished(progress.republished);
        if progress.republished > 0 {
            self.context.wake.facts_committed();
        }
        match ended {
            Ok(()) => {
                self.compared_under = Some(lease);
                self.failures = 0;
                self.repeats = if progress.republished > 0 { self.repeats.saturating_add(1) } else { 0 };
                log(cause, progress);
                state::finish(&self.pool, progress, Some(look), state.now).await?;
            }
            // Nothing can be written down now; the next tick begins anew.
            Err(ComparisonError::Database(error)) => {
                metrics::reconcile_failed();
                return Err(error.into());
            }
            Err(ComparisonError::Stopping) => state::fail(&self.pool, progress, "the process was stopping").await?,
            Err(error) => self.failed(cause, progress, &error).await?,
        }
        Ok(())
    }

    async fn failed(&mut self, cause: Cause, progress: Progress, error: &ComparisonError) -> Result<(), TickError> {
        self.failures = self.failures.saturating_add(1);
        metrics::reconcile_failed();
        tracing::warn!(
            %error,
            cause = cause.name(),
            checked = progress.checked,
            republished = progress.republished,
            "the outbox could not be compared with the stream"
        );
        Ok(state::fail(&self.pool, progress, &error.to_string()).await?)
    }
}

fn log(cause: Cause, progress: Progress) {
    let Progress { checked, lost, republished } = progress;
    let cause = cause.name();
    if lost > 0 {
        tracing::error!(cause, checked, lost, republished, "the stream has lost facts; they are published again");
    } else {
        tracing::debug!(cause, checked, "the stream holds what it acknowledged");
    }
}
