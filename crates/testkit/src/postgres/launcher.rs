//! Starting a server, again and again.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tempfile::TempDir;
use tokio::time::Instant;

use super::data::{self, SUPERUSER};
use super::options::PostgresOptions;
use crate::account::{self, Account};
use crate::error::{Error, Result};
use crate::install::PostgresPrograms;
use crate::port::Port;
use crate::process::{ChildProcess, Program};
use crate::scratch::{self, Home};
use crate::wait;

/// How long a server may take until it answers, recovery included.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long a restart is tried again while the remains of the server before, or a stranger on the port, are in the way.
const RETRY_LIMIT: Duration = Duration::from_secs(15);
/// How many ports the first start tries.
const PORTS_MAX: usize = 5;

/// All that it takes to start the server.
#[derive(Debug)]
pub(super) struct Launcher {
    pub(super) programs: PostgresPrograms,
    account: Option<Account>,
    options: PostgresOptions,
    pub(super) port: Port,
    /// Not in the home: the path of a socket must be short.
    socket: TempDir,
    home: Home,
}

impl Launcher {
    pub(super) fn prepare(programs: PostgresPrograms, options: PostgresOptions) -> Result<Launcher> {
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

    pub(super) fn data(&self) -> PathBuf {
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
            // Files in the data directory, which go with it even when the server was killed.
            "dynamic_shared_memory_type=mmap".to_owned(),
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

    /// Starts the server for the first time. Unless the caller chose the port, another one is taken when somebody was faster.
    pub(super) async fn launch_anywhere(&mut self) -> Result<ChildProcess> {
        for _ in 1..PORTS_MAX {
            match self.attempt().await {
                Err(Error::Exited { log, .. }) if self.options.port.is_none() && port_is_taken(&log) => {
                    self.port = Port::reserve()?;
                }
                outcome => return outcome,
            }
        }
        self.attempt().await
    }

    /// Starts the server on its port and waits until it answers.
    pub(super) async fn launch(&self) -> Result<ChildProcess> {
        let deadline = Instant::now() + RETRY_LIMIT;
        loop {
            match self.attempt().await {
                Err(Error::Exited { log, .. })
                    if (port_is_taken(&log) || remains_are_left(&log)) && Instant::now() < deadline =>
                {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                outcome => return outcome,
            }
        }
    }

    async fn attempt(&self) -> Result<ChildProcess> {
        let server = ChildProcess::spawn(self.program())?;
        self.ready(&server).await?;
        Ok(server)
    }

    async fn ready(&self, server: &ChildProcess) -> Result<()> {
        let answer = wait::until("an answer from PostgreSQL", READY_LIMIT, || async {
            if let Some(status) = server.exit_status() {
                return Ok(Err(server.exited(status)));
            }
            match self.connect().await {
                Ok(connection) => connection.close().await.map(Ok),
                Err(error) => Err(error),
            }
        });
        answer.await.map_err(|timed_out| server.not_ready(timed_out))?
    }

    /// Connects as superuser over the socket, which is surely ours, whoever listens on the port.
    pub(super) async fn connect(&self) -> sqlx::Result<PgConnection> {
        let options = PgConnectOptions::new_without_pgpass()
            .socket(self.socket.path())
            .port(self.port.number())
            .username(SUPERUSER)
            .database("postgres");
        options.connect().await
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        if matches!(self.home, Home::Scratch(_)) {
            data::remove_remains(&self.data());
        }
    }
}

/// Whether a start failed because of a stranger on our port.
fn port_is_taken(log: &str) -> bool {
    log.contains("could not bind")
}

/// Whether a start failed because children of a killed server have not noticed its end yet.
fn remains_are_left(log: &str) -> bool {
    log.contains("pre-existing shared memory block") || log.contains("lock file \"postmaster.pid\" already exists")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::install;

    async fn launcher(options: PostgresOptions) -> (Launcher, TcpListener) {
        let programs = install::postgres().await.unwrap();
        let launcher = Launcher::prepare(programs, options).unwrap();
        let stranger = TcpListener::bind((Ipv4Addr::LOCALHOST, launcher.port.number())).unwrap();
        (launcher, stranger)
    }

    #[tokio::test]
    async fn a_first_start_takes_another_port_when_somebody_was_faster() {
        let (mut launcher, stranger) = launcher(PostgresOptions::new().without_fsync()).await;
        let _server = launcher.launch_anywhere().await.unwrap();
        assert_ne!(launcher.port.number(), stranger.local_addr().unwrap().port());
    }

    #[tokio::test]
    async fn a_port_of_the_caller_is_not_replaced() {
        let free = Port::reserve().unwrap().number();
        let (mut launcher, _stranger) = launcher(PostgresOptions::new().without_fsync().port(free)).await;
        let error = launcher.launch_anywhere().await.unwrap_err();
        assert!(matches!(&error, Error::Exited { log, .. } if log.contains("Address already in use")), "{error}");
    }

    #[tokio::test]
    async fn a_restart_waits_for_its_port() {
        let (launcher, stranger) = launcher(PostgresOptions::new().without_fsync()).await;
        let leave = async {
            wait::until("the first attempt to fail", READY_LIMIT, || async {
                let log = std::fs::read_to_string(launcher.home.path().join("postgres.log")).unwrap_or_default();
                if port_is_taken(&log) { Ok(()) } else { Err(log) }
            })
            .await
            .unwrap();
            drop(stranger);
        };
        let (server, ()) = tokio::join!(launcher.launch(), leave);
        assert!(server.unwrap().is_running());
    }
}
