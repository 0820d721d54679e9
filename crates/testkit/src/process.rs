//! Child processes that end with the test, whatever ends the test.
//!
//! ```no_run
//! # async fn example() -> testkit::Result<()> {
//! use std::time::Duration;
//! use testkit::{ChildProcess, Program};
//!
//! let service = ChildProcess::spawn(Program::new("orders", "target/debug/orders").env("MESH_LISTEN", "127.0.0.1:0"))?;
//! service.stop(); // SIGSTOP
//! service.cont();
//! service.term(); // SIGTERM
//! let status = service.wait_exit(Duration::from_secs(10)).await?;
//! assert!(status.success(), "{}", service.log_tail(20));
//! # Ok(())
//! # }
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use crate::error::{Error, Result};
use crate::scratch;
use crate::wait::TimedOut;

pub(crate) mod guard;
mod program;
mod reaper;
pub(crate) mod tree;

pub use program::Program;
use reaper::Reaper;

/// Waits for the word that the guard knows this process, then becomes the program under the same number. When the parent
/// dies before it gives the word, the pipe ends and the program never runs.
const GATE: &str = r#"read -r _ && exec "$@" </dev/null"#;
/// How long a dropped process may take to end its own children before it is killed.
const QUIT_GRACE: Duration = Duration::from_secs(3);
/// How long the kernel may take to end a killed process.
const KILL_GRACE: Duration = Duration::from_secs(5);
/// How many lines of output an error shows.
const ERROR_LINES: usize = 20;

/// A running (or ended) child process. Dropping it ends it.
///
/// It leads its own process group, so that Ctrl-C in a terminal does not reach it. Its output goes to a file. When this
/// process ends in any way, SIGKILL included, the child is killed within moments.
#[derive(Debug)]
pub struct ChildProcess {
    name: String,
    pid: Pid,
    reaper: Arc<Reaper>,
    end_signal: Signal,
    log: PathBuf,
    /// Where the output of this process begins in a file that others may have written before.
    log_start: u64,
    /// Holds the log when the caller chose no place for it.
    _log_dir: Option<TempDir>,
}

impl ChildProcess {
    /// Starts a program.
    ///
    /// # Errors
    /// [`Error::Io`] when the program or its log file cannot be opened, or no process can be made.
    pub fn spawn(program: Program) -> Result<ChildProcess> {
        let (log, log_dir) = match &program.log {
            Some(log) => (log.clone(), None),
            None => {
                let dir = scratch::dir(&program.name)?;
                (dir.path().join("log"), Some(dir))
            }
        };
        let attempt = format!("start {} ({})", program.name, program.path.display());
        let output = File::options().create(true).append(true).open(&log).map_err(Error::io(attempt.as_str()))?;
        let log_start = output.metadata().map_err(Error::io(attempt.as_str()))?.len();
        let mut child =
            command(&program, &output).and_then(|mut command| command.spawn()).map_err(Error::io(attempt.as_str()))?;
        let pid = Pid::from_child(&child);
        let gate = child.stdin.take();
        let reaper = Reaper::start(pid, child).map_err(Error::io(attempt.as_str()))?;
        guard::hold(pid, program.end_signal)?;
        if let Some(mut gate) = gate {
            gate.write_all(b"\n").map_err(Error::io(attempt))?;
        }
        let (name, end_signal) = (program.name, program.end_signal);
        Ok(ChildProcess { name, pid, reaper, end_signal, log, log_start, _log_dir: log_dir })
    }

    /// The name given to the program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of the program itself; there is no wrapper in between.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Whether the process has not ended yet. A stopped one is still running.
    pub fn is_running(&self) -> bool {
        self.reaper.status().is_none()
    }

    /// How the process ended; `None` while it runs.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.reaper.status()
    }

    /// Sends SIGTERM, the request to finish.
    pub fn term(&self) {
        self.reaper.signal(Signal::TERM);
    }

    /// Sends SIGINT, what Ctrl-C sends.
    pub fn interrupt(&self) {
        self.reaper.signal(Signal::INT);
    }

    /// Sends SIGQUIT.
    pub(crate) fn quit(&self) {
        self.reaper.signal(Signal::QUIT);
    }

    /// Sends SIGSTOP: the process keeps its sockets and its memory and does nothing until [`cont`](ChildProcess::cont).
    pub fn stop(&self) {
        self.reaper.signal(Signal::STOP);
    }

    /// Sends SIGCONT.
    pub fn cont(&self) {
        self.reaper.signal(Signal::CONT);
    }

    /// Sends SIGKILL and returns when the process is gone.
    pub async fn kill9(&self) {
        self.reaper.signal(Signal::KILL);
        self.reaper.ended().await;
    }

    /// Waits for the process to end by itself.
    ///
    /// # Errors
    /// [`Error::NotReady`], with the last lines of output, when it still runs after `timeout`.
    pub async fn wait_exit(&self, timeout: Duration) -> Result<ExitStatus> {
        tokio::time::timeout(timeout, self.reaper.ended()).await.map_err(|_| Error::NotReady {
            name: self.name.clone(),
            source: TimedOut {
                awaited: "the process to end".to_owned(),
                last_seen: format!("process {} running", self.pid()),
                waited: timeout,
            },
            log: self.log_tail(ERROR_LINES),
        })
    }

    /// Asks the process to finish, and kills it when it has not after `grace`; how it ended.
    pub async fn shutdown(&self, grace: Duration) -> ExitStatus {
        self.term();
        if tokio::time::timeout(grace, self.reaper.ended()).await.is_err() {
            self.reaper.signal(Signal::KILL);
        }
        self.reaper.ended().await
    }

    /// The file that takes standard output and standard error.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// The last `lines` lines that this process wrote.
    pub fn log_tail(&self, lines: usize) -> String {
        let written = std::fs::read(&self.log).unwrap_or_default();
        let start = usize::try_from(self.log_start).map_or(0, |start| start.min(written.len()));
        let text = String::from_utf8_lossy(&written[start..]);
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    /// The error for a process that should be running and is not.
    pub(crate) fn exited(&self, status: ExitStatus) -> Error {
        Error::Exited { name: self.name.clone(), status, log: self.log_tail(ERROR_LINES) }
    }

    /// The error for a process that runs and is not what it should be.
    pub(crate) fn not_ready(&self, source: TimedOut) -> Error {
        Error::NotReady { name: self.name.clone(), source, log: self.log_tail(ERROR_LINES) }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if self.end_signal != Signal::KILL && self.is_running() {
            self.reaper.signal(self.end_signal);
            // A stopped process acts on a signal only when it goes on.
            self.reaper.signal(Signal::CONT);
            if self.reaper.block_until_reaped(QUIT_GRACE) {
                return;
            }
        }
        self.reaper.signal(Signal::KILL);
        self.reaper.block_until_reaped(KILL_GRACE);
    }
}

fn command(program: &Program, output: &File) -> io::Result<Command> {
    let mut path = program.path.clone();
    if path.components().count() > 1 {
        path = std::path::absolute(path)?;
        path.metadata()?;
    }
    let mut command = Command::new("sh");
    command.args(["-c", GATE, &program.name]).arg(path).args(&program.args);
    if program.clear_env {
        command.env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    }
    command.envs(program.env.iter().map(|(name, value)| (name, value)));
    if let Some(directory) = &program.directory {
        command.current_dir(directory);
    }
    if let Some(account) = &program.account {
        command.uid(account.uid).gid(account.gid);
    }
    command.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output.try_clone()?).process_group(0);
    Ok(command)
}
