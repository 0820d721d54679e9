//! The files of a run: data that is kept in a state directory, or goes with the run; logs and mails.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::Context;
use testkit::{NatsOptions, PostgresOptions};

use crate::output::say;

/// Where root keeps what another account must be able to enter.
const SYSTEM_CACHE: &str = "/var/cache/event-mesh";

/// Where data and logs are.
#[derive(Debug)]
pub(super) struct Home {
    logs: PathBuf,
    /// None for data in places that go with the run.
    data: Option<PathBuf>,
}

impl Home {
    /// Makes what is not there yet.
    pub(super) fn open(data: Option<&Path>, logs: &Path) -> anyhow::Result<Self> {
        for directory in data.into_iter().chain([logs]) {
            fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        }
        let data = data.map(Path::canonicalize).transpose().context("cannot find the state directory")?;
        let home = Self { logs: logs.to_owned(), data };
        fs::create_dir_all(home.mails()).with_context(|| format!("cannot make {}", home.mails().display()))?;
        Ok(home)
    }

    /// The directory of the mails that would have been sent.
    pub(super) fn mails(&self) -> PathBuf {
        self.data.as_ref().unwrap_or(&self.logs).join("mails")
    }

    /// The directory of the logs.
    pub(super) fn logs(&self) -> &Path {
        &self.logs
    }

    /// Whether the data outlives the run.
    pub(super) fn keeps_data(&self) -> bool {
        self.data.is_some()
    }

    /// Options of the two servers.
    pub(super) fn server_options(&self) -> anyhow::Result<(NatsOptions, PostgresOptions)> {
        let (nats, postgres) = (NatsOptions::new(), PostgresOptions::new());
        let Some(directory) = &self.data else { return Ok((nats, postgres)) };
        Ok((nats.directory(directory.join("nats")), postgres.directory(postgres_directory(directory)?)))
    }
}

/// The place for the data of PostgreSQL. Root has to run it as another account, which must be able to get there.
fn postgres_directory(state: &Path) -> anyhow::Result<PathBuf> {
    let directory = state.join("postgres");
    if !rustix::process::geteuid().is_root() || directory.exists() {
        return Ok(directory);
    }
    let mode = fs::metadata(state).with_context(|| format!("cannot look at {}", state.display()))?.permissions().mode();
    // Passing through is not reading: each file in there has a mode of its own.
    fs::set_permissions(state, Permissions::from_mode(mode | 0o011))
        .with_context(|| format!("cannot let the account of PostgreSQL pass through {}", state.display()))?;
    if anyone_may_pass(state) {
        return Ok(directory);
    }
    let elsewhere = elsewhere().with_context(|| format!("cannot make a directory in {SYSTEM_CACHE}"))?;
    say(format_args!(
        "the account of PostgreSQL may not pass through the parents of {}: its data is in {}",
        state.display(),
        elsewhere.display()
    ));
    symlink(&elsewhere, &directory).with_context(|| format!("cannot make {}", directory.display()))?;
    Ok(directory)
}

fn anyone_may_pass(directory: &Path) -> bool {
    directory.ancestors().all(|parent| fs::metadata(parent).is_ok_and(|parent| parent.mode() & 0o001 != 0))
}

fn elsewhere() -> std::io::Result<PathBuf> {
    fs::create_dir_all(SYSTEM_CACHE)?;
    let open = Permissions::from_mode(0o711);
    Ok(tempfile::Builder::new().prefix("dev-").permissions(open).tempdir_in(SYSTEM_CACHE)?.keep())
}
