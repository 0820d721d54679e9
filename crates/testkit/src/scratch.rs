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
    dir_in(&guard::scratch()?.disk, prefix)
}

/// The same in memory, where the machine has enough of it.
pub(crate) fn dir_in_memory(prefix: &str) -> Result<TempDir> {
    let scratch = guard::scratch()?;
    dir_in(scratch.memory.as_ref().unwrap_or(&scratch.disk), prefix)
}

fn dir_in(root: &Path, prefix: &str) -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix(&format!("{prefix}-"))
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(root)
        .map_err(Error::io(format!("make a directory in {}", root.display())))
}

/// Where a server keeps its state: in a scratch directory, or in one that the caller owns and that is used again.
#[derive(Debug)]
pub(crate) enum Home {
    Scratch(TempDir),
    Given(PathBuf),
}

impl Home {
    /// Opens the directory that the caller chose, made if need be.
    pub(crate) fn given(directory: &Path) -> Result<Home> {
        std::fs::create_dir_all(directory).map_err(Error::io(format!("make {}", directory.display())))?;
        let path = directory.canonicalize().map_err(Error::io(format!("find {}", directory.display())))?;
        Ok(Home::Given(path))
    }

    /// Opens the directory that the caller chose, or a scratch directory.
    pub(crate) fn open(given: Option<&Path>, prefix: &str) -> Result<Home> {
        given.map_or_else(|| dir(prefix).map(Home::Scratch), Home::given)
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Home::Scratch(dir) => dir.path(),
            Home::Given(path) => path,
        }
    }
}
