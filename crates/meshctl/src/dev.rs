//! `dev`: a whole mesh on this machine, in the foreground or detached.

mod binaries;
pub mod demo_data;
mod detach;
mod family;
mod home;
pub mod mesh;
mod ports;
mod replica;
pub mod servers;
pub mod state;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use futures_util::FutureExt;
use tokio::signal::unix::{SignalKind, signal};

use crate::outcome::Outcome;
use crate::output::{Format, say};
use crate::streams::Folder;
use mesh::{DevMesh, Options};
use state::StateDir;
use table::Table;

/// The services that a run starts.
pub const SERVICES: [&str; 4] = ["orders", "payments", "inventory", "notifications"];

/// Those of them that have a database, and so an outbox.
pub const WITH_DATABASE: [&str; 3] = ["orders", "payments", "inventory"];

/// A wait that ends when a process does.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// How to run.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Dev {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Return when everything is ready, and leave it running; `dev stop` ends it
    #[arg(long)]
    detach: bool,
    /// Processes of each service
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16))]
    replicas: u16,
    /// End by itself after so many seconds
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Without customers and goods
    #[arg(long)]
    empty: bool,
    /// Take the services' programs as they are
    #[arg(long)]
    no_build: bool,
    #[command(flatten)]
    folder: Folder,
    /// Become independent of the terminal: what --detach starts
    #[arg(long, hide = true)]
    daemon: bool,
}

/// What to do with a run that there is.
#[derive(Debug, Clone, Subcommand)]
enum Verb {
    /// End the run, and return when nothing of it is left
    Stop,
}

impl Dev {
    /// Runs a mesh until it is told to end.
    ///
    /// # Errors
    /// When something does not come up, or cannot be started again.
    pub async fn run(self, state_dir: Option<PathBuf>, format: Format) -> anyhow::Result<Outcome> {
        let state = match &state_dir {
            Some(directory) => StateDir::new(directory),
            None => StateDir::new(&StateDir::default_path()?),
        };
        match self.verb {
            Some(Verb::Stop) => detach::stop(&state).await,
            None if self.detach => detach::start(&self, &state, state_dir.is_some(), format).await,
            None => self.supervise(&state, state_dir, format).await,
        }
    }

    async fn supervise(self, state: &StateDir, data: Option<PathBuf>, format: Format) -> anyhow::Result<Outcome> {
        if self.daemon {
            // Fails only for the leader of a process group, which is independent enough.
            let _ = rustix::process::setsid();
        }
        let mut told = Signals::new()?;
        let lock = state.lock().await?;
        if data.is_none() {
            // Those of the run before; there may be none.
            let _ = std::fs::remove_dir_all(state.logs());
        }
        let options = self.options(data, state.logs());
        let mesh = tokio::select! {
            mesh = DevMesh::start(&options) => mesh?,
            () = told.end() => return Ok(Outcome::Yes),
        };
        lock.publish(&mesh.record())?;
        if !self.daemon {
            format.print(&Table::new(mesh.record(), mesh.logs()))?;
        }
        let end = match self.seconds {
            Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).left_future(),
            None => std::future::pending().right_future(),
        };
        let ended = tokio::select! {
            () = told.end() => Ok(()),
            () = end => Ok(()),
            kept = mesh.keep_alive(|| lock.publish(&mesh.record())) => kept,
        };
        say("stopping");
        tokio::select! {
            stopped = mesh.stop() => stopped.and(ended).map(|()| Outcome::Yes),
            // Dropped there, and so killed.
            () = told.end() => Ok(Outcome::No),
        }
    }

    fn options(&self, data: Option<PathBuf>, logs: PathBuf) -> Options {
        Options {
            data,
            logs,
            replicas: usize::from(self.replicas),
            declaration: self.folder.dir.clone(),
            build: !self.no_build,
            demo_data: !self.empty,
        }
    }
}

/// What tells a run to end.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

impl Signals {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for Ctrl-C, SIGTERM, or the end of the terminal.
    pub(crate) async fn end(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
