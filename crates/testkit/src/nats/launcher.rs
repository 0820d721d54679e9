//! Starting a server, again and again.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use super::config::{self, Routes};
use super::keys::Identity;
use super::monitor;
use crate::error::{Error, Result};
use crate::install::NatsServerProgram;
use crate::port::Port;
use crate::process::{ChildProcess, Program};
use crate::scratch::Home;
use crate::wait;

/// How long a server may take until JetStream answers, recovery included.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long a restart is tried again while a stranger is on the port.
const RETRY_LIMIT: Duration = Duration::from_secs(15);
/// How many ports the first start tries.
const PORTS_MAX: usize = 5;

/// All that it takes to start the server.
#[derive(Debug)]
pub(super) struct Launcher {
    pub(super) name: String,
    pub(super) program: NatsServerProgram,
    pub(super) port: Port,
    pub(super) monitor_port: Port,
    /// For a member of a cluster: its own port for the others, and all of them.
    pub(super) routes: Option<Routes>,
    pub(super) identities: Vec<Identity>,
    pub(super) default_sync: bool,
    pub(super) home: Home,
}

impl Launcher {
    pub(super) fn store(&self) -> PathBuf {
        self.home.path().join("jetstream")
    }

    /// Starts the server for the first time; takes other ports when somebody was faster.
    pub(super) async fn launch_anywhere(&mut self) -> Result<ChildProcess> {
        for _ in 1..PORTS_MAX {
            match self.attempt().await {
                Err(Error::Exited { log, .. }) if port_is_taken(&log) => {
                    self.port = Port::reserve()?;
                    self.monitor_port = Port::reserve()?;
                }
                outcome => return outcome,
            }
        }
        self.attempt().await
    }

    /// Starts the server on its ports and waits until it answers.
    pub(super) async fn launch(&self) -> Result<ChildProcess> {
        let deadline = Instant::now() + RETRY_LIMIT;
        loop {
            match self.attempt().await {
                Err(Error::Exited { log, .. }) if port_is_taken(&log) && Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                outcome => return outcome,
            }
        }
    }

    pub(super) async fn attempt(&self) -> Result<ChildProcess> {
        let server = self.spawn()?;
        self.ready(&server).await?;
        Ok(server)
    }

    /// Writes the configuration and starts the server, without waiting for it.
    pub(super) fn spawn(&self) -> Result<ChildProcess> {
        let file = self.home.path().join("nats-server.json");
        fs::write(&file, config::render(self)).map_err(Error::io(format!("write {}", file.display())))?;
        let program = Program::new(&self.name, &self.program.path)
            .arg("--config")
            .arg(file)
            .log_to(self.home.path().join("nats-server.log"));
        ChildProcess::spawn(program)
    }

    /// Waits until the server answers.
    pub(super) async fn ready(&self, server: &ChildProcess) -> Result<()> {
        // A member alone has no quorum, and is up all the same.
        let path = if self.routes.is_some() { "/healthz?js-server-only=true" } else { "/healthz" };
        let answer = wait::until("an answer from nats-server", READY_LIMIT, || async {
            if let Some(status) = server.exit_status() {
                return Ok(Err(server.exited(status)));
            }
            let health = monitor::get(self.monitor_port.address(), path).await.map_err(|error| error.to_string())?;
            if health["status"] == "ok" { Ok(Ok(())) } else { Err(health.to_string()) }
        });
        answer.await.map_err(|timed_out| server.not_ready(timed_out))?
    }
}

/// Whether a start failed because of a stranger on one of our ports.
fn port_is_taken(log: &str) -> bool {
    log.contains("address already in use")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::install;

    #[tokio::test]
    async fn a_first_start_takes_other_ports_when_somebody_was_faster() {
        let mut launcher = Launcher {
            name: "nats".to_owned(),
            program: install::nats_server().await.unwrap(),
            port: Port::reserve().unwrap(),
            monitor_port: Port::reserve().unwrap(),
            routes: None,
            identities: Vec::new(),
            default_sync: false,
            home: Home::open(None, "nats").unwrap(),
        };
        let client_port = TcpListener::bind(launcher.port.address()).unwrap();
        let server = launcher.launch_anywhere().await.unwrap();
        assert_ne!(launcher.port.address(), client_port.local_addr().unwrap());

        // A restart stays, and comes up as soon as the stranger leaves.
        let stranger = TcpListener::bind(Port::reserve().unwrap().address()).unwrap();
        launcher.monitor_port = Port::given_or_reserved(Some(stranger.local_addr().unwrap().port())).unwrap();
        drop(server);
        let leave = async {
            wait::until("the first attempt to fail", READY_LIMIT, || async {
                let log = fs::read_to_string(launcher.home.path().join("nats-server.log")).unwrap_or_default();
                if log.matches("address already in use").count() > 1 { Ok(()) } else { Err(log) }
            })
            .await
            .unwrap();
            drop(stranger);
        };
        let (server, ()) = tokio::join!(launcher.launch(), leave);
        assert!(server.unwrap().is_running());
    }
}
