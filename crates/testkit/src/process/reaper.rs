//! One thread per child: waits for its end, so that a signal is never sent to a number that another process has taken.

use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::sync::watch;

use super::guard;

/// The end of one child, awaited by a thread and shown to everyone.
#[derive(Debug)]
pub(super) struct Reaper {
    pid: Pid,
    /// `Some` once the child is reaped, after which its number means nothing.
    status: Mutex<Option<ExitStatus>>,
    reaped: Condvar,
    announced: watch::Sender<Option<ExitStatus>>,
}

impl Reaper {
    pub(super) fn start(pid: Pid, child: Child) -> std::io::Result<Arc<Reaper>> {
        let reaper = Arc::new(Reaper {
            pid,
            status: Mutex::new(None),
            reaped: Condvar::new(),
            announced: watch::Sender::new(None),
        });
        let thread = Arc::clone(&reaper);
        std::thread::Builder::new().name(format!("reaper-{pid}")).spawn(move || thread.run(child))?;
        Ok(reaper)
    }

    fn run(&self, mut child: Child) {
        // Seen first and reaped under the lock: between the two the number is still the child's.
        while let Err(rustix::io::Errno::INTR) =
            rustix::process::waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        {}
        let mut status = self.lock();
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        // `wait` fails only for a child that somebody else reaped; then there is no status to tell.
        *status = Some(child.wait().unwrap_or_default());
        guard::free(self.pid);
        self.announced.send_replace(*status);
        self.reaped.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Option<ExitStatus>> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn status(&self) -> Option<ExitStatus> {
        *self.lock()
    }

    /// Sends `signal` unless the child has ended.
    pub(super) fn signal(&self, signal: Signal) {
        if self.lock().is_none() {
            // The child exists, if only as a zombie, and it is ours: there is nothing that could be refused.
            let _ = rustix::process::kill_process(self.pid, signal);
        }
    }

    /// Blocks until the child has ended, at most `limit`; whether it has.
    pub(super) fn block_until_reaped(&self, limit: Duration) -> bool {
        let (status, _) = self
            .reaped
            .wait_timeout_while(self.lock(), limit, |status| status.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        status.is_some()
    }

    /// Waits until the child has ended.
    pub(super) async fn ended(&self) -> ExitStatus {
        let mut announced = self.announced.subscribe();
        // The guard of the watched value must not live across an await: the future is sent to other threads.
        let status = announced.wait_for(Option::is_some).await.map(|status| *status);
        match status {
            Ok(status) => status.unwrap_or_default(),
            // The sender lives in `self`.
            Err(_) => std::future::pending().await,
        }
    }
}
