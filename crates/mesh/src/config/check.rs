//! From text to meaning, collecting every mistake.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use async_nats::ServerAddr;
use tracing_subscriber::EnvFilter;

use super::findings::Findings;
use super::{
    Arguments, CONCURRENCY, CONCURRENCY_MAX, CONNECTIONS_RESERVED, Config, DATABASE_CONNECTIONS_MAX, DRAIN,
    DatabaseUrl, KvArguments, LISTEN, LOG_FILTER, NEWER_VERSION_WAIT, ProcessArguments, ProcessConfig, RelayMode,
    TelemetryConfig,
};
use crate::failpoints::Faults;
use crate::telemetry::LogFormat;

/// One variable or flag that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The variable; its flag has the same name in lower case without the prefix.
    pub variable: String,
    /// What was given, unless it may hold a secret or nothing was given.
    pub value: Option<String>,
    /// What is wrong with it.
    pub problem: String,
}

/// Everything that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.variable)?;
        if let Some(value) = &self.value {
            write!(f, "={value:?}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration cannot be used:")?;
        self.0.iter().try_for_each(|error| write!(f, "\n  {error}"))
    }
}

impl Arguments {
    /// The configuration for `serve` and `relay`. `unknown` are the errors found in the environment before.
    ///
    /// # Errors
    /// Everything that is wrong, with `unknown`.
    pub fn check(&self, unknown: Vec<ConfigError>) -> Result<Config, ConfigErrors> {
        let mut found = Findings(unknown);
        let database_url = found.secret("MESH_DATABASE_URL", self.database_url.as_deref());
        // Read by `migrate` only, but a mistake in it is found now rather than at the next upgrade.
        self.migration_database_url
            .as_deref()
            .and_then(|given| found.secret::<DatabaseUrl>("MESH_MIGRATION_DATABASE_URL", Some(given)));
        let (database_connections_max, concurrency) = self.connections(&mut found);
        let process = self.process.read(&mut found, concurrency);
        let relay = found.parsed("MESH_RELAY", self.relay.as_deref(), "expected `inside` or `off`", RelayMode::Inside);
        let retention = self.retention.read(&mut found);
        match (database_url, process) {
            (Some(database_url), Some(process)) if found.0.is_empty() => {
                Ok(Config { database_url, process, database_connections_max, relay, retention })
            }
            _ => Err(ConfigErrors(found.0)),
        }
    }

    /// The database that `migrate` works on.
    ///
    /// # Errors
    /// Everything that is wrong, with `unknown`.
    pub fn check_migration(&self, unknown: Vec<ConfigError>) -> Result<DatabaseUrl, ConfigErrors> {
        let mut found = Findings(unknown);
        let url = match self.migration_database_url.as_deref() {
            Some(given) => found.secret("MESH_MIGRATION_DATABASE_URL", Some(given)),
            None => found.secret("MESH_DATABASE_URL", self.database_url.as_deref()),
        };
        url.filter(|_| found.0.is_empty()).ok_or(ConfigErrors(found.0))
    }

    fn connections(&self, found: &mut Findings) -> (u32, u32) {
        let least = CONNECTIONS_RESERVED + 1;
        let pool = self.database_connections_max.as_deref();
        let pool = found.count("MESH_DATABASE_CONNECTIONS_MAX", pool, least..=1_000, DATABASE_CONNECTIONS_MAX);
        let most = pool.saturating_sub(CONNECTIONS_RESERVED).max(1);
        let concurrency = found.count("MESH_CONCURRENCY", self.concurrency.as_deref(), 1..=most, CONCURRENCY.min(most));
        (pool, concurrency)
    }
}

impl KvArguments {
    /// The configuration. `unknown` are the errors found in the environment before.
    ///
    /// # Errors
    /// Everything that is wrong, with `unknown`.
    pub fn check(&self, unknown: Vec<ConfigError>) -> Result<ProcessConfig, ConfigErrors> {
        let mut found = Findings(unknown);
        let concurrency = self.concurrency.as_deref();
        let concurrency = found.count("MESH_CONCURRENCY", concurrency, 1..=CONCURRENCY_MAX, CONCURRENCY);
        let config = self.process.read(&mut found, concurrency);
        config.filter(|_| found.0.is_empty()).ok_or(ConfigErrors(found.0))
    }
}

impl ProcessArguments {
    /// None only when there is a finding.
    fn read(&self, found: &mut Findings, concurrency: u32) -> Option<ProcessConfig> {
        let nats_url = self.nats_url(found);
        let nats_creds = self.nats_creds(found);
        let listen = found.parsed("MESH_LISTEN", self.listen.as_deref(), "expected address:port", LISTEN);
        let drain = found.seconds("MESH_DRAIN_SECONDS", self.drain_seconds.as_deref(), 1..=3_600, DRAIN);
        let newer = self.newer_version_wait_seconds.as_deref();
        let newer_version_wait =
            found.seconds("MESH_NEWER_VERSION_WAIT_SECONDS", newer, 0..=86_400, NEWER_VERSION_WAIT);
        let telemetry = self.telemetry(found);
        let faults = self.faults(found);
        let nats_url = nats_url?;
        Some(ProcessConfig { nats_url, nats_creds, listen, drain, concurrency, newer_version_wait, telemetry, faults })
    }

    fn nats_url(&self, found: &mut Findings) -> Option<String> {
        let Some(given) = given(self.nats_url.as_deref()) else {
            found.add("MESH_NATS_URL", None, "is required");
            return None;
        };
        let servers: Result<Vec<ServerAddr>, _> = given.split(',').map(|server| server.trim().parse()).collect();
        let problem = match servers {
            Ok(servers) if servers.iter().any(ServerAddr::has_user_pass) => {
                "must not contain a user, a password or a token; MESH_NATS_CREDS names a file that does"
            }
            Ok(_) => return Some(given.to_owned()),
            Err(_) => "expected nats://host:port, several separated by commas",
        };
        // Without its value, which may hold what must not be printed.
        found.add("MESH_NATS_URL", None, problem);
        None
    }

    fn nats_creds(&self, found: &mut Findings) -> Option<PathBuf> {
        let given = given(self.nats_creds.as_deref())?;
        if let Err(error) = std::fs::File::open(given) {
            found.add("MESH_NATS_CREDS", Some(given), format!("the file cannot be read: {error}"));
        }
        Some(PathBuf::from(given))
    }

    fn telemetry(&self, found: &mut Findings) -> TelemetryConfig {
        let filter = given(self.log.as_deref()).unwrap_or(LOG_FILTER);
        if let Err(error) = EnvFilter::try_new(filter) {
            found.add("MESH_LOG", Some(filter), format!("expected level or target=level: {error}"));
        }
        let format = self.log_format.as_deref();
        let format = found.parsed("MESH_LOG_FORMAT", format, "expected `text` or `json`", LogFormat::Text);
        let otlp_endpoint = given(self.otlp_endpoint.as_deref());
        if let Some(endpoint) = otlp_endpoint.filter(|endpoint| !is_plain_http(endpoint)) {
            let problem = "expected http://host:port of a collector near the service; TLS is not spoken here";
            found.add("MESH_OTLP_ENDPOINT", Some(endpoint), problem);
        }
        TelemetryConfig { filter: filter.to_owned(), format, otlp_endpoint: otlp_endpoint.map(ToOwned::to_owned) }
    }

    #[cfg(feature = "failpoints")]
    fn faults(&self, found: &mut Findings) -> Faults {
        let given = given(self.failpoint.as_deref()).unwrap_or_default();
        given.parse().unwrap_or_else(|error: crate::failpoints::FaultError| {
            found.add("MESH_FAILPOINT", Some(given), error.to_string());
            Faults::default()
        })
    }

    #[cfg(not(feature = "failpoints"))]
    #[expect(clippy::unused_self, reason = "the same call in builds with fail-points")]
    fn faults(&self, _found: &mut Findings) -> Faults {
        Faults::default()
    }
}

/// What was given, with an empty variable meaning "not given".
pub(super) fn given(value: Option<&str>) -> Option<&str> {
    value.filter(|value| !value.is_empty())
}

fn is_plain_http(endpoint: &str) -> bool {
    let host = endpoint.strip_prefix("http://").map(|rest| rest.split('/').next().unwrap_or_default());
    host.is_some_and(|host| !host.is_empty()) && endpoint.parse::<axum::http::Uri>().is_ok()
}

impl FromStr for RelayMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "inside" => Ok(Self::Inside),
            "off" => Ok(Self::Off),
            _ => Err(()),
        }
    }
}
