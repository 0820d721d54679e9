//! Work that time makes due: deadlines, sweeps. One unit per transaction.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::clock::jittered;
use crate::context::ServiceContext;
use crate::failure::{Backoff, Failure};
use crate::tx::Tx;

/// Something that is due from time to time. Every replica ticks: take the unit of work with
/// `for update skip locked`, and decide what is due by the clock of the database.
pub trait Timer: Send + Sync + 'static {
    /// Part of the derived ids of what a tick publishes, so durable data like the name of a subscriber.
    const NAME: &'static str;

    /// Does one unit of due work in the transaction, which is committed when this returns `Ok`.
    ///
    /// A tick that publishes says first which flow it continues, with [`Tx::continue_flow`].
    fn tick(&self, tx: &mut Tx) -> impl Future<Output = Result<Progress, Failure>> + Send;
}

/// Whether more may be due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is due now.
    Idle,
    /// Something was done; tick again at once.
    More,
}

/// Pauses after a failed tick.
const PAUSE: Backoff = Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(30) };

/// Ticks until `soft`.
pub(crate) async fn run<T: Timer>(
    timer: Arc<T>,
    period: Duration,
    pool: PgPool,
    context: Arc<ServiceContext>,
    soft: CancellationToken,
) {
    let mut failures = 0;
    while !soft.is_cancelled() {
        // A task of its own: a panic ends the tick, not the timer, and nothing cancels the transaction.
        let ticked = tokio::spawn(tick(Arc::clone(&timer), pool.clone(), Arc::clone(&context))).await;
        let pause = match ticked {
            Ok(Ok(Progress::More)) => {
                failures = 0;
                continue;
            }
            Ok(Ok(Progress::Idle)) => {
                failures = 0;
                period
            }
            Ok(Err(failure)) => {
                failures += 1;
                tracing::warn!(timer = T::NAME, %failure, "the tick failed");
                PAUSE.delay(failures)
            }
            Err(error) => {
                failures += 1;
                tracing::error!(timer = T::NAME, %error, "the tick panicked");
                PAUSE.delay(failures)
            }
        };
        tokio::select! {
            () = tokio::time::sleep(jittered(pause, &*context.clock)) => {}
            () = soft.cancelled() => {}
        }
    }
}

pub(crate) async fn tick<T: Timer>(
    timer: Arc<T>,
    pool: PgPool,
    context: Arc<ServiceContext>,
) -> Result<Progress, Failure> {
    // A tick that never names its flow would start one; the drawn root keeps even that fact unique.
    let mut tx = Tx::begin_root(&pool, &context, T::NAME, context.clock.draw_id()).await?;
    match timer.tick(&mut tx).await {
        Ok(progress) => {
            tx.commit().await?;
            Ok(progress)
        }
        Err(failure) => {
            tx.rollback().await?;
            Err(failure)
        }
    }
}
