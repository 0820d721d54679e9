//! Data directories: initialised once per version and account, copied for each server.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::account::Account;
use crate::error::{Error, Result};
use crate::install::{PostgresPrograms, cache};

/// The superuser of every server that is made here.
pub(super) const SUPERUSER: &str = "postgres";

/// Who may connect: over TCP with a password, over the socket, which lies in a closed directory, without.
const HBA: &str = "local all all trust\nhost all all 127.0.0.1/32 password\n";

/// Makes `data` a data directory that this server can run on, unless it is one already.
pub(super) fn prepare(data: &Path, programs: &PostgresPrograms, account: Option<&Account>) -> Result<()> {
    if account.is_some_and(|account| !account.may_enter(data.parent().unwrap_or(data))) {
        return Err(Error::Unusable(format!(
            "root runs PostgreSQL as another account, which cannot enter {}: choose a directory that every user may enter",
            data.display()
        )));
    }
    match fs::read_to_string(data.join("PG_VERSION")) {
        Ok(made_by) if made_by.trim() == programs.version.major.to_string() => {}
        Ok(made_by) => {
            return Err(Error::Unusable(format!(
                "{} was made by PostgreSQL {} and the one found is {}: run `rm -r {0}` to start afresh",
                data.display(),
                made_by.trim(),
                programs.version
            )));
        }
        Err(_) => {
            let template = template(programs, account)?;
            // Copied under another name: what was interrupted is never taken for a data directory.
            let partial = data.with_extension("partial");
            let _ = fs::remove_dir_all(&partial);
            copy(&template, &partial, account)
                .and_then(|()| fs::rename(&partial, data))
                .map_err(Error::io(format!("make the data directory {}", data.display())))?;
        }
    }
    let hba = data.join("pg_hba.conf");
    fs::write(&hba, HBA).map_err(Error::io(format!("write {}", hba.display())))
}

/// Removes what a killed server leaves outside its data directory and the next one on it would have removed: the shared
/// memory by which it is known to be running, of which a machine can hold a few thousand.
pub(super) fn remove_remains(data: &Path) {
    // A server that ended in order has removed this file.
    let Ok(left) = fs::read_to_string(data.join("postmaster.pid")) else { return };
    let segment = left.lines().nth(6).and_then(|line| line.split_whitespace().nth(1));
    if let Some(segment) = segment {
        // Best effort: 56 bytes are lost where there is no such program.
        let _ = Command::new("ipcrm").args(["-m", segment]).stderr(Stdio::null()).status();
    }
}

/// The directory that servers are copied from.
fn template(programs: &PostgresPrograms, account: Option<&Account>) -> Result<PathBuf> {
    let owner = account.map_or("self".to_owned(), |account| account.name.clone());
    cache::once(&format!("initdb-{}-{owner}", programs.version), |partial| {
        own(partial, account).map_err(Error::io("hand the template over to the account that runs PostgreSQL"))?;
        let mut initdb = Command::new(programs.directory.join("initdb"));
        initdb.arg("--pgdata").arg(partial).args(["--username", SUPERUSER, "--encoding", "UTF8", "--locale", "C"]);
        initdb.args(["--auth", "trust", "--no-sync", "--no-instructions"]).current_dir("/");
        if let Some(account) = account {
            initdb.uid(account.uid).gid(account.gid);
        }
        let output = initdb.output().map_err(Error::io("run initdb"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Error::Unusable(format!("initdb in {} failed: {}", partial.display(), said.trim())))
    })
}

/// Copies a data directory, giving every file to `account`.
fn copy(from: &Path, to: &Path, account: Option<&Account>) -> std::io::Result<()> {
    fs::create_dir(to)?;
    own(to, account)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target, account)?;
        } else {
            fs::copy(entry.path(), &target)?;
            chown_to(&target, account)?;
        }
    }
    Ok(())
}

/// Gives a directory to `account` alone.
pub(super) fn own(directory: &Path, account: Option<&Account>) -> std::io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    chown_to(directory, account)
}

fn chown_to(path: &Path, account: Option<&Account>) -> std::io::Result<()> {
    account.map_or(Ok(()), |account| chown(path, Some(account.uid), Some(account.gid)))
}
