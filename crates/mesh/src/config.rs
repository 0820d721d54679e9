//! What a service is told from outside: flags, each also an environment variable with the prefix `MESH_`.
//!
//! [`Arguments`] is the text as given; [`Config`] is what it means. The step between them looks at everything and
//! reports every mistake at once, before a socket is bound or a connection is opened.

mod check;
mod database_url;
mod environment;
mod findings;
mod retention;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use check::{ConfigError, ConfigErrors};
pub use database_url::DatabaseUrl;
pub use environment::unknown_variables;
pub use retention::{Retention, RetentionArguments};

use crate::failpoints::Faults;
use crate::telemetry::LogFormat;

/// The flags and variables of a service with a database, unchecked.
#[derive(Clone, Default, clap::Args)]
pub struct Arguments {
    /// PostgreSQL database of this service, as postgres://user:password@host:port/name
    #[arg(long, env = "MESH_DATABASE_URL", hide_env_values = true, value_name = "URL", global = true)]
    pub database_url: Option<String>,

    /// Where `migrate` connects when the owner of the tables is another role, or a pooler stands before the database
    /// [default: the database URL]
    #[arg(long, env = "MESH_MIGRATION_DATABASE_URL", hide_env_values = true, value_name = "URL", global = true)]
    pub migration_database_url: Option<String>,

    /// What every process is told.
    #[command(flatten)]
    pub process: ProcessArguments,

    /// Most connections of requests and handlers to the database; the relay has four of its own [default: 16]
    #[arg(long, env = "MESH_DATABASE_CONNECTIONS_MAX", value_name = "COUNT", global = true)]
    pub database_connections_max: Option<String>,

    /// Most facts handled at once; at least two connections must remain for requests
    /// [default: 16, or the connections less two]
    #[arg(long, env = "MESH_CONCURRENCY", value_name = "COUNT", global = true)]
    pub concurrency: Option<String>,

    /// `inside` publishes committed facts from this process, `off` leaves that to `relay` processes [default: inside]
    #[arg(long, env = "MESH_RELAY", value_name = "WHERE", global = true)]
    pub relay: Option<String>,

    /// How long what is done is kept.
    #[command(flatten)]
    pub retention: RetentionArguments,
}

/// The flags and variables of a service without a database, unchecked.
#[derive(Clone, Default, clap::Args)]
pub struct KvArguments {
    /// What every process is told.
    #[command(flatten)]
    pub process: ProcessArguments,

    /// Most facts handled at once [default: 16]
    #[arg(long, env = "MESH_CONCURRENCY", value_name = "COUNT", global = true)]
    pub concurrency: Option<String>,
}

/// The flags and variables of every process, unchecked.
#[derive(Clone, Default, clap::Args)]
pub struct ProcessArguments {
    /// NATS servers, separated by commas, as nats://host:port, without a user: that is what the credentials are for
    #[arg(long, env = "MESH_NATS_URL", hide_env_values = true, value_name = "URLS", global = true)]
    pub nats_url: Option<String>,

    /// Who we are to NATS: a .creds file or a file with a bare nkey seed; read again at every connect
    #[arg(long, env = "MESH_NATS_CREDS", value_name = "FILE", global = true)]
    pub nats_creds: Option<String>,

    /// Address of the HTTP interface [default: 0.0.0.0:8080]
    #[arg(long, env = "MESH_LISTEN", value_name = "ADDRESS", global = true)]
    pub listen: Option<String>,

    /// How long work in flight may take after SIGTERM before the process ends without it, in seconds [default: 20]
    #[arg(long, env = "MESH_DRAIN_SECONDS", value_name = "SECONDS", global = true)]
    pub drain_seconds: Option<String>,

    /// How long a fact of a version that this build does not know is put off before it is parked, in seconds
    /// [default: 600]
    #[arg(long, env = "MESH_NEWER_VERSION_WAIT_SECONDS", value_name = "SECONDS", global = true)]
    pub newer_version_wait_seconds: Option<String>,

    /// What is logged, as level or target=level, separated by commas [default: info,async_nats=warn]
    #[arg(long, env = "MESH_LOG", value_name = "FILTER", global = true)]
    pub log: Option<String>,

    /// Form of the log: `text` or `json` [default: text]
    #[arg(long, env = "MESH_LOG_FORMAT", value_name = "FORMAT", global = true)]
    pub log_format: Option<String>,

    /// Collector that receives traces over OTLP/HTTP, as http://host:4318; none are sent without it
    #[arg(long, env = "MESH_OTLP_ENDPOINT", value_name = "URL", global = true)]
    pub otlp_endpoint: Option<String>,

    /// Fault to inject, as point=hit:action; see the list of points in the documentation
    #[cfg(feature = "failpoints")]
    #[arg(long, env = "MESH_FAILPOINT", value_name = "FAULTS", global = true)]
    pub failpoint: Option<String>,
}

/// The checked configuration of a running service with a database.
#[derive(Debug, Clone)]
pub struct Config {
    /// Database of the service.
    pub database_url: DatabaseUrl,
    /// What every process is told.
    pub process: ProcessConfig,
    /// Most connections of requests and handlers to the database.
    pub database_connections_max: u32,
    /// Whether this process publishes committed facts.
    pub relay: RelayMode,
    /// How long what is done is kept.
    pub retention: Retention,
}

/// The checked configuration of every process; all that a service without a database is told.
#[derive(Debug, Clone)]
pub struct ProcessConfig {
    /// NATS servers, separated by commas.
    pub nats_url: String,
    /// `.creds` file or bare nkey seed.
    pub nats_creds: Option<PathBuf>,
    /// Address of the HTTP interface.
    pub listen: SocketAddr,
    /// How long work in flight may take after the first signal.
    pub drain: Duration,
    /// Most facts handled at once.
    pub concurrency: u32,
    /// How long a fact of a newer version is put off before it is parked.
    pub newer_version_wait: Duration,
    /// What is logged and where traces go.
    pub telemetry: TelemetryConfig,
    /// Faults to inject; a build without fail-points knows none.
    pub(crate) faults: Faults,
}

/// What is logged and where traces go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// In the syntax of `tracing_subscriber::EnvFilter`.
    pub filter: String,
    /// Text or JSON.
    pub format: LogFormat,
    /// Base address of an OTLP/HTTP collector.
    pub otlp_endpoint: Option<String>,
}

/// Where committed facts are published from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayMode {
    /// From the service's own process.
    Inside,
    /// From separate `relay` processes.
    Off,
}

const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 8080);
const DRAIN: Duration = Duration::from_secs(20);
const DATABASE_CONNECTIONS_MAX: u32 = 16;
const CONCURRENCY: u32 = 16;
/// Without a database nothing else bounds it.
const CONCURRENCY_MAX: u32 = 1_000;
/// Connections that handlers of facts never take, so that requests are answered under any backlog.
const CONNECTIONS_RESERVED: u32 = 2;
const NEWER_VERSION_WAIT: Duration = Duration::from_secs(600);
/// The client of NATS says at level info again what we log ourselves.
const LOG_FILTER: &str = "info,async_nats=warn";

impl Config {
    /// The defaults with the two addresses that have none: for programs that embed a service.
    #[must_use]
    pub fn new(database_url: DatabaseUrl, nats_url: String) -> Self {
        let mut process = ProcessConfig::new(nats_url);
        process.concurrency = DATABASE_CONNECTIONS_MAX - CONNECTIONS_RESERVED;
        Self {
            database_url,
            process,
            database_connections_max: DATABASE_CONNECTIONS_MAX,
            relay: RelayMode::Inside,
            retention: Retention::default(),
        }
    }
}

impl ProcessConfig {
    /// The defaults with the address that has none: for programs that embed a service.
    #[must_use]
    pub fn new(nats_url: String) -> Self {
        Self {
            nats_url,
            nats_creds: None,
            listen: LISTEN,
            drain: DRAIN,
            concurrency: CONCURRENCY,
            newer_version_wait: NEWER_VERSION_WAIT,
            telemetry: TelemetryConfig::default(),
            faults: Faults::default(),
        }
    }
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { filter: LOG_FILTER.to_owned(), format: LogFormat::Text, otlp_endpoint: None }
    }
}

#[cfg(test)]
mod tests;
