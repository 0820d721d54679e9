//! Closed while the database, or what else deliveries need, is away: nothing is delivered then, nothing uses up an attempt, and one probe a second asks
//! for its return instead of every waiting message.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock::{SharedClock, jittered};
use crate::delivery::{Inbox, Outage, Registry};

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

    /// Probes until everything answers, then opens.
    pub(super) async fn probe<I: Inbox>(
        &self,
        inbox: &I,
        registry: &Registry<I::Context>,
        clock: &SharedClock,
        stop: &CancellationToken,
    ) {
        while !stop.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(jittered(PROBE_EVERY, &**clock)) => {}
                () = stop.cancelled() => return,
            }
            // Not a transaction: cancelling nothing, it may as well end by the pool's own time-out.
            match everything_answers(inbox, registry).await {
                Ok(()) => {
                    tracing::info!("what deliveries need is back");
                    self.open.send_replace(true);
                    return;
                }
                Err(why) => tracing::warn!(%why, "what deliveries need is away; they wait"),
            }
        }
    }
}

async fn everything_answers<I: Inbox>(inbox: &I, registry: &Registry<I::Context>) -> Result<(), Outage> {
    inbox.probe().await?;
    for subscriber in registry.iter() {
        subscriber.probe().await?;
    }
    Ok(())
}
