//! The directory that keeps installed programs and initialised data directories between runs.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::account;
use crate::error::{Error, Result};

/// For root, when the account that runs PostgreSQL cannot enter root's own cache.
const SYSTEM_CACHE: &str = "/var/cache/event-mesh";

/// The cache, made if need be.
pub(crate) fn directory() -> Result<PathBuf> {
    let directory = choose(|name| std::env::var_os(name).map(PathBuf::from), account::is_root())?;
    if !directory.exists() {
        make_enterable(&directory)?;
    }
    let owner = fs::metadata(&directory).map_err(Error::io(format!("look at {}", directory.display())))?.uid();
    // Programs are run from here: nobody else may have laid them out.
    if owner != rustix::process::geteuid().as_raw() && owner != 0 {
        return Err(Error::Unusable(format!(
            "the cache {} belongs to another user: set TESTKIT_CACHE to a directory of yours",
            directory.display()
        )));
    }
    Ok(directory)
}

fn choose(variable: impl Fn(&str) -> Option<PathBuf>, root: bool) -> Result<PathBuf> {
    if let Some(chosen) = variable("TESTKIT_CACHE") {
        if root && !account::anyone_may_enter(&chosen) {
            return Err(Error::Unusable(format!(
                "TESTKIT_CACHE={} cannot be entered by the account that runs PostgreSQL for root: choose a directory \
                 that every user may enter",
                chosen.display()
            )));
        }
        return Ok(chosen);
    }
    let home = || variable("HOME").map(|home| home.join(".cache"));
    match variable("XDG_CACHE_HOME").or_else(home).map(|caches| caches.join("event-mesh")) {
        Some(usual) if !root || account::anyone_may_enter(&usual) => Ok(usual),
        _ if root => Ok(PathBuf::from(SYSTEM_CACHE)),
        _ => Err(Error::Unusable("there is no HOME for a cache: set TESTKIT_CACHE to a directory of yours".to_owned())),
    }
}

/// Makes `cache/name` once, whichever process comes first: `fill` builds it under another name, and a rename that cannot
/// be seen half-done puts it in place. The others wait.
pub(crate) fn once(name: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    once_in(&directory()?, name, fill)
}

fn once_in(cache: &Path, name: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let place = cache.join(name);
    if place.exists() {
        return Ok(place);
    }
    let lock_path = cache.join(format!("{name}.lock"));
    let attempt = || Error::io(format!("lock {}", lock_path.display()));
    let lock = File::create(&lock_path).map_err(attempt())?;
    lock.lock().map_err(attempt())?;
    if place.exists() {
        return Ok(place);
    }
    let partial = cache.join(format!("{name}.partial"));
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(Error::io(format!("remove {}", partial.display())))?;
    }
    make_enterable(&partial)?;
    fill(&partial)?;
    fs::rename(&partial, &place).map_err(Error::io(format!("put {} in place", place.display())))?;
    Ok(place)
}

/// Makes a directory that every account may enter, whatever the umask.
fn make_enterable(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .and_then(|()| fs::set_permissions(directory, Permissions::from_mode(0o755)))
        .map_err(Error::io(format!("make {}", directory.display())))
}

#[cfg(test)]
mod tests;
