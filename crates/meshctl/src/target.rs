//! Which mesh a verb talks to, and where its parts are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::dev::state::StateDir;
use crate::outcome::Failure;

/// How the command line names a mesh.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Which mesh")]
pub struct Selection {
    /// The `dev` run that keeps its state here
    #[arg(long, global = true, env = "MESH_STATE_DIR", value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// The NATS server, e.g. nats://nats:4222
    #[arg(long, global = true, env = "MESH_NATS_URL", value_name = "URL")]
    pub nats_url: Option<String>,
    /// File with the nkey seed, or .creds file, of the operator
    #[arg(long, global = true, env = "MESH_NATS_CREDS", value_name = "FILE")]
    pub nats_creds: Option<PathBuf>,
}

/// The file `dev.json`: what is running, for whoever wants to talk to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevRecord {
    /// The supervisor.
    pub pid: u32,
    /// The broker.
    pub nats: NatsRecord,
    /// The replicas of each service.
    pub services: BTreeMap<String, Vec<ServiceRecord>>,
}

/// Where the broker of a `dev` run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NatsRecord {
    /// For clients.
    pub url: String,
    /// HTTP endpoint of the server's own state.
    pub monitor_url: String,
    /// File with the seed of a user that may read everything.
    pub operator_creds: PathBuf,
}

/// Where one replica of a service is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceRecord {
    /// Its HTTP surface.
    pub http_url: String,
    /// Its database, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_url: Option<String>,
    /// Its process.
    pub pid: u32,
}

/// One mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The NATS server.
    pub nats_url: String,
    /// The operator's credentials; none for an open server.
    pub credentials: Option<PathBuf>,
    /// The `dev` run, if it is one.
    pub dev: Option<DevRecord>,
    /// Where this was learned from, for errors.
    pub origin: String,
}

impl Selection {
    /// Finds the mesh: the run of `--state-dir`, else the server of `--nats-url`, else the `dev` run that has no state
    /// directory of its own.
    ///
    /// # Errors
    /// A usage error when nothing is named and nothing runs; unreachable when the named run does not run.
    pub fn resolve(&self) -> anyhow::Result<Target> {
        match (&self.state_dir, &self.nats_url) {
            (Some(directory), _) => {
                let dev = StateDir::new(directory).running()?.ok_or_else(|| not_running(directory))?;
                Ok(Target::of_run(dev, &format!("the dev run in {}", directory.display())))
            }
            (None, Some(url)) => Ok(Target {
                nats_url: url.clone(),
                credentials: self.nats_creds.clone(),
                dev: None,
                origin: "named by --nats-url or MESH_NATS_URL".to_owned(),
            }),
            (None, None) => {
                let directory = StateDir::default_path()?;
                let dev = StateDir::new(&directory).running()?.ok_or_else(nothing_named)?;
                Ok(Target::of_run(dev, &format!("the dev run in {}", directory.display())))
            }
        }
    }
}

impl Target {
    /// The mesh of a `dev` run.
    pub fn of_run(dev: DevRecord, origin: &str) -> Self {
        Self {
            nats_url: dev.nats.url.clone(),
            credentials: Some(dev.nats.operator_creds.clone()),
            dev: Some(dev),
            origin: origin.to_owned(),
        }
    }

    /// The first replica's HTTP address of a service, for verbs that speak to it as a client would.
    ///
    /// # Errors
    /// A usage error when it is not known.
    pub fn http_url(&self, service: &str) -> anyhow::Result<&str> {
        let replicas = self.dev.as_ref().and_then(|dev| dev.services.get(service));
        let first = replicas.and_then(|replicas| replicas.first()).map(|replica| replica.http_url.as_str());
        first.ok_or_else(|| Failure::usage(format!("the HTTP address of {service} is not known here: name it")))
    }
}

fn not_running(directory: &Path) -> anyhow::Error {
    Failure::unreachable(format!(
        "no dev run has its state in {0}: start one with `meshctl dev --detach --state-dir {0}`",
        directory.display()
    ))
}

fn nothing_named() -> anyhow::Error {
    Failure::usage(
        "which mesh? Start one with `meshctl dev`, or name one with --state-dir or --nats-url (MESH_NATS_URL)",
    )
}
