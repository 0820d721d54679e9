//! Directories that vanish with the test, also when it is killed.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::{Error, Result};
use crate::process::guard;

/// Makes an empty directory, open to its owner alone, that is removed when it is dropped, and at the latest when this process ends in any way.
///
/// # Errors
/// [`Error::Io`] when the directory cannot be made.
pub fn dir(prefix: &str) -> Result<TempDir> {
    let root = guard::scratch()?;
    tempfile::Builder::new()
        .prefix(&format!("{prefix}-"))
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(&root)
        .map_err(Error::io(format!("make a directory in {}", root.display())))
}

/// Where a server keeps its state: in a scratch directory, or in one that the caller owns and that is used again.
#[derive(Debug)]
pub(crate) enum Home {
    Scratch(TempDir),
    Given(PathBuf),
}

impl Home {
    pub(crate) fn open(given: Option<&Path>, prefix: &str) -> Result<Home> {
        let Some(given) = given else { return Ok(Home::Scratch(dir(prefix)?)) };
        std::fs::create_dir_all(given).map_err(Error::io(format!("make {}", given.display())))?;
        let path = given.canonicalize().map_err(Error::io(format!("find {}", given.display())))?;
        Ok(Home::Given(path))
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Home::Scratch(dir) => dir.path(),
            Home::Given(path) => path,
        }
    }
}
