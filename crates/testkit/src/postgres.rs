//! Private PostgreSQL servers.
//!
//! ```no_run
//! # async fn example() -> testkit::Result<()> {
//! use testkit::{Postgres, PostgresOptions};
//!
//! let postgres = Postgres::start(PostgresOptions::new()).await?;
//! postgres.create_role_database("orders", "orders").await?;
//! let url = postgres.url_for("orders", "orders");
//! postgres.kill9().await;
//! postgres.restart().await?; // same port, same data, recovered
//! # Ok(())
//! # }
//! ```

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::error::{Error, Result};
use crate::install::{self, Version};
use crate::process::{ChildProcess, tree};

mod data;
mod database;
mod launcher;
mod options;

use data::SUPERUSER;
pub use database::{TestDatabase, database};
use launcher::Launcher;
pub use options::PostgresOptions;

/// How long a server may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// A private PostgreSQL server on 127.0.0.1. Dropping it stops it, and removes its data unless the caller chose the place.
///
/// It may be stopped, killed and restarted; its port and its URLs stay the same.
#[derive(Debug)]
pub struct Postgres {
    server: Mutex<Arc<ChildProcess>>,
    launcher: Launcher,
    password: String,
}

impl Postgres {
    /// Starts a server.
    ///
    /// # Errors
    /// [`Error::Unavailable`] and [`Error::Unusable`] name the remedy; [`Error::Exited`] and [`Error::NotReady`] show what
    /// the server said.
    pub async fn start(options: PostgresOptions) -> Result<Postgres> {
        let programs = install::postgres().await?;
        let mut launcher = install::blocking(move || Launcher::prepare(programs, options)).await?;
        let server = Mutex::new(Arc::new(launcher.launch_anywhere().await?));
        // A random word that happens to be at hand.
        let password = nkeys::KeyPair::new_user().public_key();
        let postgres = Postgres { server, launcher, password };
        postgres.execute(&format!("alter role {SUPERUSER} password '{}'", postgres.password)).await?;
        Ok(postgres)
    }

    /// The version of the server.
    pub fn version(&self) -> Version {
        self.launcher.programs.version
    }

    /// The directory of `psql`, `pg_dump` and the rest.
    pub fn programs(&self) -> &Path {
        &self.launcher.programs.directory
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.launcher.port.address()
    }

    /// The URL of a database for the superuser.
    pub fn url(&self, database: &str) -> String {
        self.url_for(SUPERUSER, database)
    }

    /// The URL of a database for a role made by [`create_role_database`](Postgres::create_role_database).
    pub fn url_for(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}:{}@{}/{database}", self.password, self.address())
    }

    /// The data directory.
    pub fn data_directory(&self) -> PathBuf {
        self.launcher.data()
    }

    /// The server process: its number, its log, its signals.
    pub fn process(&self) -> Arc<ChildProcess> {
        Arc::clone(&self.server.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of the server process.
    pub fn pid(&self) -> u32 {
        self.process().pid()
    }

    /// Runs statements as superuser in the database `postgres`.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn execute(&self, sql: &str) -> Result<()> {
        let mut connection = self.connect().await?;
        run(&mut connection, sql).await?;
        connection.close().await.map_err(Error::database("end the session"))
    }

    /// Makes a login role and a database that it owns and that no other role may enter. What exists is kept.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn create_role_database(&self, role: &str, database: &str) -> Result<()> {
        let mut connection = self.connect().await?;
        let (quoted_role, quoted_database) = (quoted(role), quoted(database));
        let role_exists: bool = sqlx::query_scalar("select exists (select from pg_roles where rolname = $1)")
            .bind(role)
            .fetch_one(&mut connection)
            .await
            .map_err(Error::database("look for the role"))?;
        let verb = if role_exists { "alter" } else { "create" };
        run(&mut connection, &format!("{verb} role {quoted_role} login password '{}'", self.password)).await?;
        let database_exists: bool = sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
            .bind(database)
            .fetch_one(&mut connection)
            .await
            .map_err(Error::database("look for the database"))?;
        if !database_exists {
            run(&mut connection, &format!("create database {quoted_database} owner {quoted_role}")).await?;
        }
        run(&mut connection, &format!("revoke all on database {quoted_database} from public")).await
    }

    async fn connect(&self) -> Result<PgConnection> {
        self.launcher.connect().await.map_err(Error::database("reach the server"))
    }

    /// Kills the server and all its sessions with SIGKILL, and returns when they are gone: nothing is flushed, nothing said,
    /// and no session commits any more. (Of the postmaster alone the sessions would learn when they next wait.)
    pub async fn kill9(&self) {
        tree::kill_with_children(&self.process()).await;
    }

    /// Stops without a checkpoint, as `pg_ctl stop --mode immediate` does: the next start has to recover.
    ///
    /// # Errors
    /// [`Error::NotReady`] when the server does not end.
    pub async fn stop_immediate(&self) -> Result<()> {
        let server = self.process();
        server.quit();
        server.wait_exit(STOP_LIMIT).await.map(drop)
    }

    /// Stops in order: sessions are cut, what they committed is checkpointed.
    ///
    /// # Errors
    /// [`Error::NotReady`] when the server does not end.
    pub async fn stop(&self) -> Result<()> {
        let server = self.process();
        server.interrupt();
        server.wait_exit(STOP_LIMIT).await.map(drop)
    }

    /// Starts the server again, on the same port and data; stops it first when it runs. Returns when it answers.
    ///
    /// # Errors
    /// Those of [`start`](Postgres::start).
    pub async fn restart(&self) -> Result<()> {
        if self.process().is_running() {
            self.stop().await?;
        }
        let server = self.launcher.launch().await?;
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(server);
        Ok(())
    }
}

async fn run(connection: &mut PgConnection, sql: &str) -> Result<()> {
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await;
    // A password must not get into a test's output.
    let shown = sql.split(" password ").next().unwrap_or_default();
    done.map(drop).map_err(Error::database(format!("run `{shown}`")))
}

fn quoted(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}
