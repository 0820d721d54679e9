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
    let cache = directory()?;
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
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)], root: bool) -> Option<PathBuf> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value));
        choose(find, root).ok()
    }

    #[test]
    fn the_cache_is_where_the_variables_say() {
        let all = [("TESTKIT_CACHE", "/srv/kit"), ("XDG_CACHE_HOME", "/srv/xdg"), ("HOME", "/srv/home")];
        assert_eq!(chosen(&all, false), Some("/srv/kit".into()));
        assert_eq!(chosen(&all[1..], false), Some("/srv/xdg/event-mesh".into()));
        assert_eq!(chosen(&all[2..], false), Some("/srv/home/.cache/event-mesh".into()));
        assert_eq!(chosen(&[], false), None);
    }

    #[test]
    fn root_takes_the_system_cache_when_its_own_is_closed() {
        let closed = tempfile::tempdir().unwrap();
        fs::set_permissions(closed.path(), Permissions::from_mode(0o700)).unwrap();
        let closed = closed.path().to_str().unwrap();
        assert_eq!(chosen(&[("HOME", closed)], true), Some(SYSTEM_CACHE.into()));
        assert_eq!(chosen(&[], true), Some(SYSTEM_CACHE.into()));
        assert_eq!(chosen(&[("TESTKIT_CACHE", closed)], true), None);
    }
}
