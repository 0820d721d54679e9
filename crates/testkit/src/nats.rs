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

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{Client, ConnectOptions};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::install::{self, NatsServerProgram, Version};
use crate::port::Port;
use crate::process::ChildProcess;
use crate::scratch::Home;

mod apply;
mod cluster;
mod config;
mod keys;
mod launcher;
mod monitor;
mod options;

pub use cluster::NatsCluster;
use launcher::Launcher;
pub use options::{NatsIdentity, NatsOptions, NatsUser};

/// How long a server may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// A private nats-server on 127.0.0.1 with JetStream in files. Dropping it ends it, and removes its streams unless the
/// caller chose the place.
///
/// It may be stopped, killed and restarted; its ports and its URL stay the same.
#[derive(Debug)]
pub struct Nats {
    server: Mutex<Arc<ChildProcess>>,
    launcher: Launcher,
}

impl Nats {
    /// Starts a server and waits until JetStream answers.
    ///
    /// # Errors
    /// [`Error::Unavailable`] and [`Error::Unusable`] name the remedy; [`Error::Exited`] and [`Error::NotReady`] show what
    /// the server said.
    pub async fn start(options: NatsOptions) -> Result<Nats> {
        let program = program(&options).await?;
        let home = Home::open(options.home.as_deref(), "nats")?;
        let identities = keys::identities(&options.users, &home.path().join("keys"))?;
        let mut launcher = Launcher {
            name: "nats".to_owned(),
            program,
            port: Port::given_or_reserved(options.port)?,
            monitor_port: Port::given_or_reserved(options.monitor_port)?,
            routes: None,
            identities,
            default_sync: options.default_sync,
            home,
        };
        let chosen = options.port.is_some() || options.monitor_port.is_some();
        let server = if chosen { launcher.attempt().await? } else { launcher.launch_anywhere().await? };
        Ok(Nats { server: Mutex::new(Arc::new(server)), launcher })
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
        self.launcher.port.address()
    }

    /// The URL of the monitoring endpoint.
    pub fn monitor_url(&self) -> String {
        format!("http://{}", self.launcher.monitor_port.address())
    }

    /// The answer of the monitoring endpoint to a path, `"/jsz?streams=true"` for instance.
    ///
    /// # Errors
    /// [`Error::Io`] when the server does not answer or the answer is not JSON.
    pub async fn monitor(&self, path: &str) -> Result<Value> {
        monitor::get(self.launcher.monitor_port.address(), path)
            .await
            .map_err(Error::io(format!("ask nats-server for {path}")))
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
        keys::find(&self.launcher.identities, user)?.file()
    }

    /// Connects as a user, with its inbox prefix.
    ///
    /// # Errors
    /// [`Error::Unusable`] for an unknown user, [`Error::Nats`] when the server does not admit it.
    pub async fn connect(&self, user: &str) -> Result<Client> {
        let options = keys::find(&self.launcher.identities, user)?.connect_options()?;
        options.connect(self.url()).await.map_err(Error::nats(format!("connect to NATS as {user}")))
    }

    /// Connects as one who may do everything: as anybody to an open server, else as a user that is there for this.
    ///
    /// # Errors
    /// [`Error::Nats`] when the server does not answer.
    pub async fn admin(&self) -> Result<Client> {
        if !self.launcher.identities.is_empty() {
            return self.connect(keys::ADMIN).await;
        }
        ConnectOptions::new().connect(self.url()).await.map_err(Error::nats("connect to NATS"))
    }

    /// Creates the stream of `directory/stream.json` and the consumers of `directory/consumers/*.json`: files that hold
    /// exactly the configuration of the JetStream API, except that one copy is kept. What exists with the same
    /// configuration is left alone.
    ///
    /// # Errors
    /// [`Error::JetStream`] with the server's reason.
    pub async fn apply(&self, directory: impl AsRef<Path>) -> Result<()> {
        apply::apply(&self.admin().await?, directory.as_ref(), 1).await.map(drop)
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
        let server = self.launcher.launch().await?;
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(server);
        Ok(())
    }
}

async fn program(options: &NatsOptions) -> Result<NatsServerProgram> {
    match &options.version {
        Some(version) => install::nats_server_version(version).await,
        None => install::nats_server().await,
    }
}
