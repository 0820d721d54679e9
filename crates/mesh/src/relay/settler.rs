//! Moves acknowledged rows behind the relay's back, so that the next round is published meanwhile.

use std::collections::VecDeque;
use std::time::Duration;

use sqlx::PgPool;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::settle::{self, Acknowledged, StreamIdentity};
use crate::clock::{SharedClock, jittered};
use crate::failpoints;
use crate::failure::Backoff;

/// Delays between tries to move rows while the database is away. Their acknowledgements are known: publishing them again
/// would only make duplicates.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(2) };

/// Moves that run at the same time, at most.
const MOVES_MAX: usize = 2;

/// Runs the moves.
#[derive(Debug)]
pub(super) struct Settler {
    pool: PgPool,
    owner: Uuid,
    clock: SharedClock,
    stop: CancellationToken,
    /// What is being moved, and the task that moves it.
    running: VecDeque<(Vec<i64>, JoinHandle<bool>)>,
}

/// A finished move.
#[derive(Debug)]
pub(super) struct Moved {
    /// The rows that were acknowledged.
    pub(super) sequences: Vec<i64>,
    /// Whether all of them left the outbox. If not, a lease was lost.
    pub(super) complete: bool,
}

impl Settler {
    /// `stop` ends waiting for a database that is away; rows that were not moved are published again by whoever comes
    /// next.
    pub(super) fn new(pool: PgPool, owner: Uuid, clock: SharedClock, stop: CancellationToken) -> Self {
        Self { pool, owner, clock, stop, running: VecDeque::new() }
    }

    /// Starts a move; returns those that had to end first.
    pub(super) async fn start(&mut self, identity: StreamIdentity, rows: Vec<Acknowledged>) -> Vec<Moved> {
        let finished = self.finish(MOVES_MAX - 1).await;
        let sequences = rows.iter().map(|row| row.seq).collect();
        let (pool, owner, clock, stop) = (self.pool.clone(), self.owner, self.clock.clone(), self.stop.clone());
        let task = tokio::spawn(async move { move_rows(&pool, owner, &clock, &stop, identity, &rows).await });
        self.running.push_back((sequences, task));
        finished
    }

    /// Waits until at most `most` moves are running; returns those that ended.
    pub(super) async fn finish(&mut self, most: usize) -> Vec<Moved> {
        let mut finished = Vec::new();
        while self.running.len() > most || self.running.front().is_some_and(|(_, task)| task.is_finished()) {
            let Some((sequences, task)) = self.running.pop_front() else { break };
            let complete = task.await.unwrap_or_else(|error| {
                tracing::error!(%error, "a task that moves acknowledged rows ended");
                false
            });
            finished.push(Moved { sequences, complete });
        }
        finished
    }
}

/// Whether all rows were moved.
async fn move_rows(
    pool: &PgPool,
    owner: Uuid,
    clock: &SharedClock,
    stop: &CancellationToken,
    identity: StreamIdentity,
    rows: &[Acknowledged],
) -> bool {
    let mut failures = 0;
    loop {
        failpoints::hit("relay.after_ack_before_mark");
        match settle::move_sent(pool, owner, identity, rows).await {
            Ok(moved) => {
                failpoints::hit("relay.after_mark");
                return moved == rows.len() as u64;
            }
            Err(error) => {
                failures += 1;
                tracing::warn!(%error, rows = rows.len(), "acknowledged rows could not be moved");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(jittered(BACKOFF.delay(failures), &**clock)) => {}
            () = stop.cancelled() => return false,
        }
    }
}
