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

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::account::{self, Account};
use crate::error::{Error, Result};
use crate::install::{self, PostgresPrograms, Version};
use crate::port::Port;
use crate::process::{ChildProcess, Program};
use crate::scratch::{self, Home};
use crate::wait;

mod data;
mod database;
mod options;

use data::SUPERUSER;
pub use database::{TestDatabase, database};
pub use options::PostgresOptions;

/// How long a server may take until it answers, recovery included.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long a server may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// How long a start is tried again while the remains of the server before, or a stranger on the port, are in the way.
const RETRY_LIMIT: Duration = Duration::from_secs(15);

/// A private PostgreSQL server on 127.0.0.1. Dropping it stops it, and removes its data unless the caller chose the place.
///
/// It may be stopped, killed and restarted; its port and its URLs stay the same.
#[derive(Debug)]
pub struct Postgres {
    server: Mutex<Arc<ChildProcess>>,
    launcher: Launcher,
    password: String,
}

/// All that it takes to start the server, again and again.
#[derive(Debug)]
struct Launcher {
    programs: PostgresPrograms,
    account: Option<Account>,
    options: PostgresOptions,
    port: Port,
    /// Not in the home: the path of a socket must be short.
    socket: TempDir,
    home: Home,
}

impl Postgres {
    /// Starts a server.
    ///
    /// # Errors
    /// [`Error::Unavailable`] and [`Error::Unusable`] name the remedy; [`Error::Exited`] and [`Error::NotReady`] show what
    /// the server said.
    pub async fn start(options: PostgresOptions) -> Result<Postgres> {
        let programs = install::postgres().await?;
        let launcher = install::blocking(move || Launcher::prepare(programs, options)).await?;
        let server = Mutex::new(Arc::new(launcher.launch().await?));
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
        (Ipv4Addr::LOCALHOST, self.launcher.port.number()).into()
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
        self.launcher.execute(SUPERUSER, sql).await
    }

    /// Makes a login role and a database that it owns and that no other role may enter. What exists is kept.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn create_role_database(&self, role: &str, database: &str) -> Result<()> {
        let mut connection = self.launcher.connect(SUPERUSER).await.map_err(Error::database("reach the server"))?;
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

    /// Kills the postmaster with SIGKILL; its children end at once when they notice. Nothing is flushed or said.
    pub async fn kill9(&self) {
        self.process().kill9().await;
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

impl Launcher {
    fn prepare(programs: PostgresPrograms, options: PostgresOptions) -> Result<Launcher> {
        let account = account::for_postgres()?;
        let home = match &options.home {
            None if options.without_fsync => Home::Scratch(scratch::dir_in_memory("postgres")?),
            given => Home::open(given.as_deref(), "postgres")?,
        };
        let socket = scratch::dir("socket")?;
        let hand_over = || Error::io("hand directories over to the account that runs PostgreSQL");
        data::own(socket.path(), account.as_ref()).map_err(hand_over())?;
        if let Home::Scratch(home) = &home {
            data::own(home.path(), account.as_ref()).map_err(hand_over())?;
        }
        data::prepare(&home.path().join("data"), &programs, account.as_ref())?;
        let port = Port::given_or_reserved(options.port)?;
        Ok(Launcher { programs, account, options, port, socket, home })
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    fn program(&self) -> Program {
        let fsync = if self.options.without_fsync { "off" } else { "on" };
        let mut settings = vec![
            format!("listen_addresses={}", Ipv4Addr::LOCALHOST),
            format!("port={}", self.port.number()),
            format!("unix_socket_directories={}", self.socket.path().display()),
            format!("fsync={fsync}"),
            format!("full_page_writes={fsync}"),
            "shared_buffers=16MB".to_owned(),
            "max_connections=200".to_owned(),
            "log_min_messages=warning".to_owned(),
        ];
        if self.options.without_fsync {
            // What is kept in memory is kept small.
            settings.extend(["min_wal_size=32MB".to_owned(), "max_wal_size=64MB".to_owned()]);
        }
        settings.extend(self.options.settings.iter().map(|(name, value)| format!("{name}={value}")));
        let mut program = Program::new("postgres", self.programs.directory.join("postgres"))
            .arg("-D")
            .arg(self.data())
            .log_to(self.home.path().join("postgres.log"))
            .current_dir("/")
            .run_as(self.account.clone())
            .end_with_quit();
        for setting in settings {
            program = program.arg("-c").arg(setting);
        }
        program
    }

    /// Starts the server and waits until it answers.
    async fn launch(&self) -> Result<ChildProcess> {
        let deadline = Instant::now() + RETRY_LIMIT;
        loop {
            let server = ChildProcess::spawn(self.program())?;
            match self.ready(&server).await {
                Err(Error::Exited { log, .. }) if passes(&log) && Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                outcome => return outcome.map(|()| server),
            }
        }
    }

    async fn ready(&self, server: &ChildProcess) -> Result<()> {
        let answer = wait::until("an answer from PostgreSQL", READY_LIMIT, || async {
            if let Some(status) = server.exit_status() {
                return Ok(Err(server.exited(status)));
            }
            match self.connect(SUPERUSER).await {
                Ok(connection) => connection.close().await.map(Ok),
                Err(error) => Err(error),
            }
        });
        answer.await.map_err(|timed_out| server.not_ready(timed_out))?
    }

    /// Connects over the socket, which is surely ours, as superuser.
    async fn connect(&self, database: &str) -> sqlx::Result<PgConnection> {
        let options = PgConnectOptions::new_without_pgpass()
            .socket(self.socket.path())
            .port(self.port.number())
            .username(SUPERUSER)
            .database(database);
        options.connect().await
    }

    async fn execute(&self, database: &str, sql: &str) -> Result<()> {
        let mut connection = self.connect(database).await.map_err(Error::database("reach the server"))?;
        run(&mut connection, sql).await?;
        connection.close().await.map_err(Error::database("end the session"))
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

/// Whether a start failed for something that goes away: children of a killed server that have not noticed yet, or a
/// stranger on our port.
fn passes(log: &str) -> bool {
    ["pre-existing shared memory block", "lock file \"postmaster.pid\"", "could not bind", "could not create any TCP"]
        .iter()
        .any(|cause| log.contains(cause))
}
