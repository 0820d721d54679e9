//! The life of a process: what is running, whether it should stop, whether it may receive traffic.
//!
//! The first signal is *soft*: readiness goes off, nothing new is claimed, fetched or accepted, what is in flight ends.
//! The second, or the end of the drain time, is *hard*: the process ends as it is. Both are safe, since nothing is
//! acknowledged before it is committed; soft only wastes less.

mod readiness;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use readiness::{Check, Readiness, Report};

/// The tokens, tasks and readiness of one process. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lifecycle {
    soft: CancellationToken,
    hard: CancellationToken,
    tracker: TaskTracker,
    names: Arc<Names>,
    readiness: Readiness,
    failed: Arc<OnceLock<&'static str>>,
}

/// How many tasks of each name are running.
#[derive(Debug, Default)]
struct Names(Mutex<BTreeMap<&'static str, usize>>);

/// What was still running when the drain ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) struct Unfinished {
    /// Named tasks and how many of each.
    pub(crate) named: BTreeMap<&'static str, usize>,
    /// All tracked tasks, with those that have no name.
    pub(crate) total: usize,
}

impl Lifecycle {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Cancelled when no new work may be taken.
    pub(crate) fn soft(&self) -> &CancellationToken {
        &self.soft
    }

    /// Cancelled when the process ends without what is still running.
    pub(crate) fn hard(&self) -> &CancellationToken {
        &self.hard
    }

    /// The tasks that a drain waits for.
    pub(crate) fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }

    /// Whether and why this process may receive traffic.
    pub(crate) fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Runs a task that a drain waits for and names if it does not end.
    pub(crate) fn spawn<F>(&self, name: &'static str, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let running = Running::enter(&self.names, name);
        self.tracker.spawn(async move {
            let _running = running;
            task.await
        })
    }

    /// As [`Lifecycle::spawn`], for a task without which the process is of no use: when it ends before it was told to, by a
    /// panic or otherwise, the process stops and fails, so that its supervisor starts it anew.
    pub(crate) fn spawn_essential<F>(&self, name: &'static str, task: F)
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let running = self.spawn(name, task);
        let lifecycle = self.clone();
        tokio::spawn(async move {
            let ended = running.await;
            if lifecycle.soft.is_cancelled() && ended.is_ok() {
                return;
            }
            tracing::error!(task = name, panicked = ended.is_err(), "an essential task ended by itself");
            // The first one is the one to name.
            let _ = lifecycle.failed.set(name);
            lifecycle.stop();
        });
    }

    /// The essential task that ended by itself, if one did.
    pub(crate) fn failed(&self) -> Option<&'static str> {
        self.failed.get().copied()
    }

    /// Takes no new work from here on.
    pub(crate) fn stop(&self) {
        self.readiness.drain();
        self.soft.cancel();
    }

    /// Ends without what is still running.
    pub(crate) fn kill(&self) {
        self.stop();
        self.hard.cancel();
    }

    /// Listens to SIGTERM and SIGINT: the first stops, the second kills.
    ///
    /// # Errors
    /// When a signal cannot be listened to.
    pub(crate) fn listen_for_signals(&self) -> io::Result<JoinHandle<()>> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let lifecycle = self.clone();
        // Not tracked: it ends with the process, and a drain must not wait for it.
        Ok(tokio::spawn(async move {
            let name = next_signal(&mut terminate, &mut interrupt).await;
            tracing::info!(signal = name, "stopping: what is in flight is finished, a second signal ends it");
            lifecycle.stop();
            let name = next_signal(&mut terminate, &mut interrupt).await;
            tracing::warn!(signal = name, "ending without what is in flight");
            lifecycle.kill();
        }))
    }

    /// Waits for every tracked task, at most `drain` long or until the hard token; then cancels the hard token.
    ///
    /// # Errors
    /// [`Unfinished`] with what was cut off. Its work is repeated elsewhere.
    pub(crate) async fn drain(&self, drain: Duration) -> Result<(), Unfinished> {
        crate::failpoints::hit("shutdown.drain");
        self.stop();
        self.tracker.close();
        let finished = tokio::select! {
            () = self.tracker.wait() => true,
            () = tokio::time::sleep(drain) => false,
            () = self.hard.cancelled() => false,
        };
        self.hard.cancel();
        if finished { Ok(()) } else { Err(self.unfinished()) }
    }

    fn unfinished(&self) -> Unfinished {
        Unfinished { named: self.names.lock().clone(), total: self.tracker.len() }
    }
}

async fn next_signal(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

impl Names {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, usize>> {
        // The map is whole between any two statements, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts one task under its name for as long as it lives.
struct Running {
    names: Arc<Names>,
    name: &'static str,
}

impl Running {
    fn enter(names: &Arc<Names>, name: &'static str) -> Self {
        *names.lock().entry(name).or_default() += 1;
        Self { names: Arc::clone(names), name }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut names = self.names.lock();
        if let Some(count) = names.get_mut(self.name) {
            *count -= 1;
            if *count == 0 {
                names.remove(self.name);
            }
        }
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tasks were cut off", self.total)?;
        self.named.iter().try_for_each(|(name, count)| write!(f, ", {count} of them {name}"))
    }
}

#[cfg(test)]
mod tests;
