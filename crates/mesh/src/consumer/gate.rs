//! Closed while the database is away: nothing is delivered then, nothing uses up an attempt, and one probe a second asks
//! for its return instead of every waiting message.

use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock::{SharedClock, jittered};

/// Between probes; jittered down to half of it, so at most one to two a second and replica.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Whether deliveries may run.
#[derive(Debug)]
pub(super) struct Gate {
    open: watch::Sender<bool>,
}

impl Gate {
    pub(super) fn new() -> Self {
        Self { open: watch::channel(true).0 }
    }

    pub(super) fn is_open(&self) -> bool {
        *self.open.borrow()
    }

    /// Closes it; true if it was open, so that the caller starts the probe.
    pub(super) fn close(&self) -> bool {
        self.open.send_replace(false)
    }

    pub(super) async fn opened(&self) {
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }

    /// Probes until the database answers, then opens.
    pub(super) async fn probe(&self, pool: &PgPool, clock: &SharedClock, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(jittered(PROBE_EVERY, &**clock)) => {}
                () = stop.cancelled() => return,
            }
            // Not a transaction: cancelling nothing, it may as well end by the pool's own time-out.
            match sqlx::query_scalar!("select 1 as one").fetch_one(pool).await {
                Ok(_) => {
                    tracing::info!("the database is back");
                    self.open.send_replace(true);
                    return;
                }
                Err(error) => tracing::warn!(%error, "the database is away; deliveries wait"),
            }
        }
    }
}
