//! One process of a service under a supervisor that starts it again whenever it ends.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde_json::Value;
use testkit::{ChildProcess, Program, wait};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Service;

/// How long a process may take until it is ready, with another test on the same two cores.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long a process may take to end after SIGTERM: its drain time, and room.
const END_LIMIT: Duration = Duration::from_secs(40);
/// Lines of the log that say where it listens are among the first.
const LOG_LINES: usize = 100_000;

/// Variables of one process, beside those of its servers.
pub(super) type Environment = Vec<(String, String)>;

/// How one process of a replica ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its number.
    pub pid: u32,
    /// How.
    pub status: ExitStatus,
    /// Whether the test ended it, or asked it to end.
    pub asked: bool,
}

impl Ended {
    /// Whether a fail-point killed it: it died by SIGKILL and the test has sent none.
    #[must_use]
    pub fn by_failpoint(&self) -> bool {
        !self.asked && self.status.signal() == Some(9)
    }
}

/// One replica of a service. As under any supervisor, another process takes the place of one that ends.
#[derive(Debug)]
pub struct Replica {
    inner: Arc<Inner>,
    supervisor: JoinHandle<()>,
}

#[derive(Debug)]
struct Inner {
    service: Service,
    name: String,
    program: PathBuf,
    log: PathBuf,
    environment: Environment,
    wanted: watch::Sender<bool>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    process: Option<Arc<ChildProcess>>,
    /// Additional variables of the processes to come, one set each.
    next: VecDeque<Environment>,
    /// Whether the test has signalled the process.
    asked: bool,
    /// Whether the process stands still.
    frozen: bool,
    ended: Vec<Ended>,
    failed: Option<String>,
}

impl Replica {
    pub(super) fn start(
        service: Service,
        name: String,
        program: PathBuf,
        log: PathBuf,
        environment: Environment,
    ) -> Replica {
        let inner = Arc::new(Inner {
            service,
            name,
            program,
            log,
            environment,
            wanted: watch::Sender::new(true),
            state: Mutex::default(),
        });
        let supervisor = tokio::spawn(Arc::clone(&inner).supervise());
        Replica { inner, supervisor }
    }

    /// `orders-0` for instance.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The running process.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn process(&self) -> Result<Arc<ChildProcess>> {
        Ok(wait::until(&format!("a process of {}", self.name()), READY_LIMIT, || async { self.inner.running() })
            .await?)
    }

    /// Where the running process listens.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn address(&self) -> Result<SocketAddr> {
        let awaited = format!("the address of {}", self.name());
        Ok(wait::until(&awaited, READY_LIMIT, || async { self.inner.address() }).await?)
    }

    /// Waits until the process says that it may receive traffic.
    ///
    /// # Errors
    /// When it does not in time, with what it said last.
    pub async fn ready(&self) -> Result<()> {
        let client = reqwest::Client::new();
        let poll = || async {
            let url = format!("http://{}/readyz", self.inner.address()?);
            let answer = client.get(url).send().await.map_err(|error| error.to_string())?;
            let ready = answer.status().is_success();
            let text = answer.text().await.map_err(|error| error.to_string())?;
            if ready { Ok(()) } else { Err(text) }
        };
        let ready = wait::until(&format!("{} to be ready", self.name()), READY_LIMIT, poll).await;
        ready.map_err(|error| anyhow!("{error}; its last lines:\n{}", self.log_tail(15)))
    }

    /// Kills the process with SIGKILL; the supervisor starts another.
    ///
    /// # Errors
    /// When there is no process in time.
    pub async fn kill9(&self) -> Result<()> {
        let process = self.process().await?;
        self.inner.state().asked = true;
        process.kill9().await;
        Ok(())
    }

    /// Asks the process to finish and waits for its end; the supervisor starts another.
    ///
    /// # Errors
    /// When it does not end within its drain time.
    pub async fn term(&self) -> Result<ExitStatus> {
        let process = self.process().await?;
        self.inner.state().asked = true;
        process.term();
        Ok(process.wait_exit(END_LIMIT).await?)
    }

    /// Replaces the process by one with these additional variables, and the ones after it by one with the next set each.
    /// A process without a set of its own is a plain one.
    ///
    /// # Errors
    /// Those of [`term`](Replica::term) and [`ready`](Replica::ready).
    pub async fn restart_with(&self, sets: impl IntoIterator<Item = (&str, String)>) -> Result<()> {
        let sets = sets.into_iter().map(|(name, value)| vec![(name.to_owned(), value)]);
        self.inner.state().next = sets.collect();
        self.term().await?;
        self.ready().await
    }

    /// Lets no new process take the place of the one that is asked to finish.
    ///
    /// # Errors
    /// Those of [`term`](Replica::term).
    pub async fn down(&self) -> Result<()> {
        self.inner.wanted.send_replace(false);
        self.term().await.map(drop)
    }

    /// Starts a process again after [`down`](Replica::down).
    pub fn up(&self) {
        self.inner.wanted.send_replace(true);
    }

    /// Stops the process with SIGSTOP. Clients are sent elsewhere, if there is an elsewhere.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn freeze(&self) -> Result<()> {
        self.process().await?.stop();
        self.inner.state().frozen = true;
        Ok(())
    }

    /// Lets the process go on.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn thaw(&self) -> Result<()> {
        self.process().await?.cont();
        self.inner.state().frozen = false;
        Ok(())
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.inner.state().frozen
    }

    /// How the processes before the current one ended.
    pub fn ended(&self) -> Vec<Ended> {
        self.inner.state().ended.clone()
    }

    /// The end of the log.
    pub fn log_tail(&self, lines: usize) -> String {
        let text = std::fs::read_to_string(&self.inner.log).unwrap_or_default();
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.supervisor.abort();
        self.inner.state().process = None;
    }
}

/// Waits for the end of a process, however long it takes.
async fn end_of(process: &ChildProcess) -> ExitStatus {
    loop {
        let poll = || async { process.exit_status().ok_or("it runs") };
        if let Ok(status) = wait::until("the end of a process", READY_LIMIT, poll).await {
            return status;
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn supervise(self: Arc<Inner>) {
        let mut wanted = self.wanted.subscribe();
        while wanted.wait_for(|wanted| *wanted).await.is_ok() {
            let process = match self.spawn() {
                Ok(process) => process,
                Err(error) => {
                    self.state().failed = Some(error.to_string());
                    return;
                }
            };
            let status = end_of(&process).await;
            let mut state = self.state();
            let asked = std::mem::take(&mut state.asked);
            state.ended.push(Ended { pid: process.pid(), status, asked });
            state.process = None;
        }
    }

    fn spawn(&self) -> testkit::Result<Arc<ChildProcess>> {
        let mut state = self.state();
        let additional = state.next.pop_front().unwrap_or_default();
        let program = Program::new(&self.name, &self.program).args([self.service.name(), "serve"]).clear_env();
        let variables = self.environment.iter().chain(&additional);
        let program = variables.fold(program, |program, (name, value)| program.env(name, value)).log_to(&self.log);
        let process = Arc::new(ChildProcess::spawn(program)?);
        state.process = Some(Arc::clone(&process));
        Ok(process)
    }

    fn running(&self) -> Result<Arc<ChildProcess>, String> {
        let state = self.state();
        let running = state.process.as_ref().filter(|process| process.is_running());
        let last = || state.ended.last().map_or_else(|| "none yet".to_owned(), |ended| format!("{ended:?}"));
        running.cloned().ok_or_else(|| state.failed.clone().unwrap_or_else(last))
    }

    /// Where the process has said that it listens.
    fn address(&self) -> Result<SocketAddr, String> {
        let log = self.running()?.log_tail(LOG_LINES);
        let started = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find(|line| line["message"] == "starting");
        let address = started.and_then(|line| line["address"].as_str()?.parse().ok());
        address.ok_or_else(|| log.lines().last().unwrap_or("it says nothing").to_owned())
    }
}
