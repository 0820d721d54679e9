//! One process of one service, kept alive.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use testkit::{ChildProcess, Program, wait};
use tokio::time::Instant;

use super::ports::Port;
use crate::output::say;
use crate::target::ServiceRecord;

/// How long a service may take to be ready.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long a service may take to finish what is in flight; longer than its own default of 20 seconds.
const DRAIN_WITHIN: Duration = Duration::from_secs(25);
/// Pause before a service that ended is started again; doubled while it ends young.
const RESTART_PAUSE: Duration = Duration::from_millis(250);
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(10);
/// From this age on, an end is not blamed on the start.
const GROWN_UP: Duration = Duration::from_secs(30);
/// Lines of its log that are shown when a service ends.
const SHOWN_LINES: usize = 15;
/// Who writes to customers, and where they are.
const SENDER: &str = "The shop <shop@shop.example>";
const CUSTOMER_DOMAIN: &str = "customers.example";
/// Variables of this program, which a service would not know, and those that are set for each service.
const OURS: [&str; 7] = [
    "MESH_STATE_DIR",
    "MESH_ORDERS_URL",
    "MESH_NATS_URL",
    "MESH_NATS_CREDS",
    "MESH_DATABASE_URL",
    "MESH_MIGRATION_DATABASE_URL",
    "MESH_LISTEN",
];

/// All that it takes to run one replica, again and again.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// The service.
    pub(super) service: &'static str,
    /// Which replica, from 0.
    pub(super) index: usize,
    /// The program.
    pub(super) executable: PathBuf,
    /// Its database, if it has one.
    pub(super) database_url: Option<String>,
    /// The broker.
    pub(super) nats_url: String,
    /// Its own credentials there.
    pub(super) nats_creds: PathBuf,
    /// The directory of the logs.
    pub(super) logs: PathBuf,
    /// The directory of the mails.
    pub(super) mails: PathBuf,
}

/// A running replica.
#[derive(Debug)]
pub(super) struct Replica {
    plan: Plan,
    port: Port,
    process: Mutex<Arc<ChildProcess>>,
}

impl Plan {
    /// Brings the tables of the service up to date.
    ///
    /// # Errors
    /// With the last lines of its log.
    pub(super) async fn migrate(&self) -> anyhow::Result<()> {
        let name = format!("{}-migrate", self.service);
        let program = self.program(&name).arg("migrate");
        let child = ChildProcess::spawn(program)?;
        let status = child.wait_exit(READY_WITHIN).await?;
        let service = self.service;
        anyhow::ensure!(status.success(), "{service} migrate ended with {status}:\n{}", child.log_tail(SHOWN_LINES));
        Ok(())
    }

    /// Starts the replica and waits until it takes requests and facts.
    ///
    /// # Errors
    /// With the last lines of its log, when it ends before or is not ready in time.
    pub(super) async fn start(self, port: Port, http: &reqwest::Client) -> anyhow::Result<Replica> {
        let process = Mutex::new(Arc::new(self.spawn(port.address())?));
        let replica = Replica { plan: self, port, process };
        replica.ready(http).await.map(|()| replica)
    }

    fn spawn(&self, address: SocketAddr) -> anyhow::Result<ChildProcess> {
        let program = self
            .program(&format!("{}-{}", self.service, self.index))
            .env("MESH_NATS_URL", &self.nats_url)
            .env("MESH_NATS_CREDS", &self.nats_creds)
            .env("MESH_LISTEN", address.to_string());
        Ok(ChildProcess::spawn(program)?)
    }

    /// The program with the environment of this process, except for what a service must not see.
    fn program(&self, name: &str) -> Program {
        let log = self.logs.join(format!("{name}.log"));
        let program = Program::new(name, &self.executable).clear_env().log_to(log);
        let program = std::env::vars_os()
            .filter(|(name, _)| !OURS.iter().any(|ours| name == ours))
            .fold(program, |program, (name, value)| program.env(name, value));
        match &self.database_url {
            Some(url) => program.env("MESH_DATABASE_URL", url),
            None => {
                let mails = [("NOTIFICATIONS_FROM", SENDER), ("NOTIFICATIONS_CUSTOMER_DOMAIN", CUSTOMER_DOMAIN)];
                let program = mails.into_iter().fold(program, |program, (name, value)| program.env(name, value));
                program.env("NOTIFICATIONS_FILE_DIR", &self.mails)
            }
        }
    }
}

impl Replica {
    /// Its entry in `dev.json`.
    pub(super) fn record(&self) -> ServiceRecord {
        ServiceRecord {
            http_url: format!("http://{}", self.port.address()),
            database_url: self.plan.database_url.clone(),
            pid: self.process().pid(),
        }
    }

    /// The service that it is a replica of.
    pub(super) fn service(&self) -> &'static str {
        self.plan.service
    }

    /// The process of the moment.
    pub(super) fn process(&self) -> Arc<ChildProcess> {
        Arc::clone(&self.process.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn ready(&self, http: &reqwest::Client) -> anyhow::Result<()> {
        let process = self.process();
        let url = format!("http://{}/readyz", self.port.address());
        let answer = wait::until("an answer of /readyz", READY_WITHIN, || async {
            if let Some(status) = process.exit_status() {
                return Ok(Err(anyhow::anyhow!("{} ended with {status}:\n{}", process.name(), self.last_words())));
            }
            match http.get(&url).send().await {
                Ok(response) if response.status().is_success() => Ok(Ok(())),
                Ok(response) => Err(format!("{}: {}", response.status(), response.text().await.unwrap_or_default())),
                Err(error) => Err(error.to_string()),
            }
        });
        answer.await.map_err(|late| anyhow::anyhow!("{}: {late}:\n{}", process.name(), self.last_words()))?
    }

    /// Starts it again whenever it ends, and tells `changed` that it has another process. Never returns by itself.
    ///
    /// # Errors
    /// When it cannot be started at all.
    pub(super) async fn keep_alive(&self, changed: &(impl Fn() -> anyhow::Result<()> + Sync)) -> anyhow::Result<()> {
        let mut pause = RESTART_PAUSE;
        loop {
            let since = Instant::now();
            let process = self.process();
            let status = process.wait_exit(super::FOR_EVER).await?;
            say(format_args!("{} ended with {status}, starting it again:\n{}", process.name(), self.last_words()));
            pause = if since.elapsed() > GROWN_UP { RESTART_PAUSE } else { (pause * 2).min(RESTART_PAUSE_MAX) };
            tokio::time::sleep(pause).await;
            let next = self
                .plan
                .spawn(self.port.address())
                .with_context(|| format!("cannot start {} again", process.name()))?;
            *self.process.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
            changed()?;
        }
    }

    /// Lets it finish what is in flight, and ends it when it does not.
    pub(super) async fn stop(&self) {
        self.process().shutdown(DRAIN_WITHIN).await;
    }

    fn last_words(&self) -> String {
        self.process().log_tail(SHOWN_LINES)
    }
}
