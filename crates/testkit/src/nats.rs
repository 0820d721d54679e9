//! Private nats-servers with JetStream, alone or three as a cluster.
//!
//! ```no_run
//! # async fn example() -> testkit::Result<()> {
//! use testkit::{Nats, NatsOptions, NatsUser};
//!
//! let orders = NatsUser::new("orders")
//!     .publish(["evt.orders.>"])
//!     .subscribe(["_INBOX_orders.>"])
//!     .inbox_prefix("_INBOX_orders");
//! let nats = Nats::start(NatsOptions::new().users([orders])).await?;
//! nats.apply("nats").await?; // nats/stream.json and nats/consumers/*.json
//! let client = nats.connect("orders").await?;
//! nats.kill9().await;
//! nats.restart().await?; // same ports, same streams; the client reconnects
//! # Ok(())
//! # }
//! ```

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{Client, ConnectOptions};
use serde_json::Value;
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::install::{self, NatsServerProgram, Version};
use crate::port::Port;
use crate::process::{ChildProcess, Program};
use crate::scratch::Home;
use crate::wait;

mod apply;
mod cluster;
mod config;
mod keys;
mod monitor;
mod options;

pub use cluster::NatsCluster;
use config::{Node, Routes};
use keys::Identity;
pub use options::{NatsIdentity, NatsOptions, NatsUser};

/// How long a server may take until JetStream answers, recovery included.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long a server may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// How long a restart is tried again while a stranger is on the port.
const RETRY_LIMIT: Duration = Duration::from_secs(15);
/// How many ports the first start tries.
const PORTS_MAX: usize = 5;

/// A private nats-server on 127.0.0.1 with JetStream in files. Dropping it ends it, and removes its streams unless the
/// caller chose the place.
///
/// It may be stopped, killed and restarted; its ports and its URL stay the same.
#[derive(Debug)]
pub struct Nats {
    server: Mutex<Arc<ChildProcess>>,
    launcher: Launcher,
    identities: Vec<Identity>,
}

/// All that it takes to start the server, again and again.
#[derive(Debug)]
struct Launcher {
    name: String,
    program: NatsServerProgram,
    port: Port,
    monitor_port: Port,
    /// For a member of a cluster: its own port for the others, kept reserved, and all of them.
    routes: Option<(Port, Routes)>,
    home: Home,
}

impl Nats {
    /// Starts a server and waits until JetStream answers.
    ///
    /// # Errors
    /// [`Error::Unavailable`] and [`Error::Unusable`] name the remedy; [`Error::Exited`] and [`Error::NotReady`] show what
    /// the server said.
    pub async fn start(options: NatsOptions) -> Result<Nats> {
        let program = program(&options).await?;
        let mut home = Home::open(options.home.as_deref(), "nats")?;
        let identities = keys::identities(&options.users, &home.path().join("keys"))?;
        for _ in 1..PORTS_MAX {
            let nats = Nats::on_ports(&options, &program, &identities, home)?;
            match nats.answers().await {
                // Somebody was faster to take a port that we chose: another one does as well.
                Err(Error::Exited { log, .. }) if port_is_taken(&log) && options.port.is_none() => {
                    home = nats.launcher.home;
                }
                outcome => return outcome.map(|()| nats),
            }
        }
        let nats = Nats::on_ports(&options, &program, &identities, home)?;
        nats.answers().await.map(|()| nats)
    }

    fn on_ports(
        options: &NatsOptions,
        program: &NatsServerProgram,
        identities: &[Identity],
        home: Home,
    ) -> Result<Nats> {
        let port = Port::given_or_reserved(options.port)?;
        let monitor_port = Port::given_or_reserved(options.monitor_port)?;
        let (name, program) = ("nats".to_owned(), program.clone());
        let launcher = Launcher { name, program, port, monitor_port, routes: None, home };
        Nats::spawn(launcher, identities.to_vec(), options.default_sync)
    }

    /// Writes the configuration and starts the server, without waiting for it.
    fn spawn(launcher: Launcher, identities: Vec<Identity>, default_sync: bool) -> Result<Nats> {
        let config = Node {
            name: &launcher.name,
            port: launcher.port.number(),
            monitor_port: launcher.monitor_port.number(),
            store: &launcher.store(),
            default_sync,
            identities: &identities,
            routes: launcher.routes.as_ref().map(|(_, routes)| routes),
        };
        let file = launcher.config();
        fs::write(&file, config.render()).map_err(Error::io(format!("write {}", file.display())))?;
        let server = Mutex::new(Arc::new(launcher.launch()?));
        Ok(Nats { server, launcher, identities })
    }

    /// The version of the server.
    pub fn version(&self) -> Version {
        self.launcher.program.version
    }

    /// The URL for clients, without a user.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address())
    }

    /// The address that it listens on for clients.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.launcher.port.number()).into()
    }

    /// The URL of the monitoring endpoint.
    pub fn monitor_url(&self) -> String {
        format!("http://{}", self.monitor_address())
    }

    fn monitor_address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.launcher.monitor_port.number()).into()
    }

    /// The answer of the monitoring endpoint to a path, `"/jsz?streams=true"` for instance.
    ///
    /// # Errors
    /// [`Error::Io`] when the server does not answer or the answer is not JSON.
    pub async fn monitor(&self, path: &str) -> Result<Value> {
        monitor::get(self.monitor_address(), path).await.map_err(Error::io(format!("ask nats-server for {path}")))
    }

    /// The directory of the streams. Copy it only while the server is down.
    pub fn store_dir(&self) -> PathBuf {
        self.launcher.store()
    }

    /// The file with the seed of a user whose key pair was generated here; only its owner may read it.
    ///
    /// # Errors
    /// [`Error::Unusable`] when there is no such user or its key pair was made elsewhere.
    pub fn creds_file(&self, user: &str) -> Result<&Path> {
        keys::find(&self.identities, user)?.file()
    }

    /// Connects as a user, with its inbox prefix.
    ///
    /// # Errors
    /// [`Error::Unusable`] for an unknown user, [`Error::Nats`] when the server does not admit it.
    pub async fn connect(&self, user: &str) -> Result<Client> {
        let options = keys::find(&self.identities, user)?.connect_options()?;
        options.connect(self.url()).await.map_err(Error::nats(format!("connect to NATS as {user}")))
    }

    /// Connects as one who may do everything: as anybody to an open server, else as a user that is there for this.
    ///
    /// # Errors
    /// [`Error::Nats`] when the server does not answer.
    pub async fn admin(&self) -> Result<Client> {
        if !self.identities.is_empty() {
            return self.connect(keys::ADMIN).await;
        }
        ConnectOptions::new().connect(self.url()).await.map_err(Error::nats("connect to NATS"))
    }

    /// Creates the stream of `directory/stream.json` and the consumers of `directory/consumers/*.json`: files that hold
    /// exactly the configuration of the JetStream API. What exists with the same configuration is left alone.
    ///
    /// # Errors
    /// [`Error::JetStream`] with the server's reason.
    pub async fn apply(&self, directory: impl AsRef<Path>) -> Result<()> {
        let replicas = self.launcher.routes.as_ref().map(|(_, routes)| routes.peers.len());
        apply::apply(&self.admin().await?, directory.as_ref(), replicas.or(Some(1))).await
    }

    /// The server process: its number, its log, its signals.
    pub fn process(&self) -> Arc<ChildProcess> {
        Arc::clone(&self.server.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of the server process.
    pub fn pid(&self) -> u32 {
        self.process().pid()
    }

    /// Kills the server with SIGKILL.
    pub async fn kill9(&self) {
        self.process().kill9().await;
    }

    /// Stops the server with SIGTERM and waits for its end.
    ///
    /// # Errors
    /// [`Error::NotReady`] when it does not end.
    pub async fn term(&self) -> Result<()> {
        let server = self.process();
        server.term();
        server.wait_exit(STOP_LIMIT).await.map(drop)
    }

    /// Starts the server again, on the same ports and streams; stops it first when it runs. Returns when JetStream
    /// answers; a member of a cluster may then still wait for the others.
    ///
    /// # Errors
    /// Those of [`start`](Nats::start).
    pub async fn restart(&self) -> Result<()> {
        if self.process().is_running() {
            self.term().await?;
        }
        self.replace()?;
        self.ready().await
    }

    fn replace(&self) -> Result<()> {
        let server = Arc::new(self.launcher.launch()?);
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = server;
        Ok(())
    }

    /// Waits until the server answers; starts it again while a stranger is on its port.
    async fn ready(&self) -> Result<()> {
        let deadline = Instant::now() + RETRY_LIMIT;
        loop {
            match self.answers().await {
                Err(Error::Exited { log, .. }) if port_is_taken(&log) && Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    self.replace()?;
                }
                outcome => return outcome,
            }
        }
    }

    async fn answers(&self) -> Result<()> {
        // A member alone has no quorum, and is up all the same.
        let path = if self.launcher.routes.is_some() { "/healthz?js-server-only=true" } else { "/healthz" };
        let server = self.process();
        let answer = wait::until("an answer from nats-server", READY_LIMIT, || async {
            if let Some(status) = server.exit_status() {
                return Ok(Err(server.exited(status)));
            }
            let health = monitor::get(self.monitor_address(), path).await.map_err(|error| error.to_string())?;
            if health["status"] == "ok" { Ok(Ok(())) } else { Err(health.to_string()) }
        });
        answer.await.map_err(|timed_out| server.not_ready(timed_out))?
    }
}

impl Launcher {
    fn store(&self) -> PathBuf {
        self.home.path().join("jetstream")
    }

    fn config(&self) -> PathBuf {
        self.home.path().join("nats-server.json")
    }

    fn launch(&self) -> Result<ChildProcess> {
        let program = Program::new(&self.name, &self.program.path)
            .arg("--config")
            .arg(self.config())
            .log_to(self.home.path().join("nats-server.log"));
        ChildProcess::spawn(program)
    }
}

async fn program(options: &NatsOptions) -> Result<NatsServerProgram> {
    match &options.version {
        Some(version) => install::nats_server_version(version).await,
        None => install::nats_server().await,
    }
}

/// Whether a start failed because of a stranger on one of our ports.
fn port_is_taken(log: &str) -> bool {
    log.contains("address already in use")
}
