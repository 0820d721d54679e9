//! What a PostgreSQL server of a test may be asked to be.

use std::path::PathBuf;

/// Options of one server. The default is a durable server on a free port, in a directory that vanishes with it.
#[derive(Clone, Debug, Default)]
pub struct PostgresOptions {
    pub(super) home: Option<PathBuf>,
    pub(super) port: Option<u16>,
    pub(super) without_fsync: bool,
    pub(super) settings: Vec<(String, String)>,
}

impl PostgresOptions {
    /// A durable server on a free port, in a directory that vanishes with it.
    pub fn new() -> PostgresOptions {
        PostgresOptions::default()
    }

    /// Keeps the data in this directory, which outlives the server and is used again by the next one.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> PostgresOptions {
        self.home = Some(directory.into());
        self
    }

    /// Listens on this port of 127.0.0.1.
    pub fn port(mut self, port: u16) -> PostgresOptions {
        self.port = Some(port);
        self
    }

    /// Turns `fsync` off. Only for databases that die with the test: what a power failure leaves is garbage, and a
    /// measurement of it says nothing about the product. `synchronous_commit` stays on, and a killed server still
    /// recovers, because the operating system keeps what was written. Without a directory of the caller, its files are
    /// kept in memory where the machine has enough.
    pub fn without_fsync(mut self) -> PostgresOptions {
        self.without_fsync = true;
        self
    }

    /// Sets a server parameter, as in `postgres -c name=value`.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> PostgresOptions {
        self.settings.push((name.into(), value.into()));
        self
    }
}
