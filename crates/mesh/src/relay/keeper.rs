//! Keeps the leases alive beside the relay's work, so that a slow broker cannot let them run out.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use sqlx::PgPool;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::leases::{self, Lease, RENEWAL};
use crate::clock::jittered;
use crate::context::ServiceContext;

/// The leases that this relay holds, as last heard from the database.
#[derive(Debug, Clone, Default)]
pub(super) struct Held {
    pub(super) leases: Vec<Lease>,
    /// Publish nothing after it; `None` before the first renewal.
    pub(super) deadline: Option<Instant>,
    /// Grows with every renewal.
    pub(super) renewal: u64,
}

/// What the relay and its keeper share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) held: watch::Sender<Held>,
    /// Groups with rows in flight.
    busy: Mutex<HashSet<i16>>,
    renew_now: Notify,
}

impl Shared {
    /// Names the groups that are not to be given up right now.
    pub(super) fn set_busy(&self, groups: impl IntoIterator<Item = i16>) {
        if let Ok(mut busy) = self.busy.lock() {
            busy.clear();
            busy.extend(groups);
        }
    }

    /// Asks for a renewal before it is due: the relay doubts its leases.
    pub(super) fn doubt(&self) {
        self.renew_now.notify_one();
    }

    fn busy(&self) -> Vec<i16> {
        self.busy.lock().map(|busy| busy.iter().copied().collect()).unwrap_or_default()
    }
}

/// Renews until `stop`, then gives everything up.
pub(super) async fn keep(pool: PgPool, context: Arc<ServiceContext>, shared: Arc<Shared>, stop: CancellationToken) {
    let owner = context.instance;
    let label = format!("{}@{} pid {}", context.name, context.build, std::process::id());
    while !stop.is_cancelled() {
        match leases::renew(&pool, owner, &label, &shared.busy()).await {
            Ok(renewal) => shared.held.send_modify(|held| {
                held.leases = renewal.leases;
                held.deadline = Some(renewal.deadline);
                held.renewal += 1;
            }),
            Err(error) => tracing::warn!(%error, "the relay's leases could not be renewed"),
        }
        tokio::select! {
            () = tokio::time::sleep(jittered(RENEWAL, &*context.clock)) => {}
            () = shared.renew_now.notified() => {}
            () = stop.cancelled() => {}
        }
    }
    shared.held.send_modify(|held| held.leases.clear());
    if let Err(error) = leases::resign(&pool, owner).await {
        tracing::warn!(%error, "the relay's leases could not be given up; they run out by themselves");
    }
}
