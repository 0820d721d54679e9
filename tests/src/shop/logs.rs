//! The logs of the service processes, kept when a test fails.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::Bed;

/// The directory with one file per replica; each shop has its own, because the tests may run twice at the same time.
#[derive(Debug)]
pub(super) struct Logs {
    name: String,
    directory: TempDir,
    forget: AtomicBool,
}

impl Logs {
    pub(super) fn create(bed: Bed, name: &str) -> Result<Logs> {
        let directory = tempfile::Builder::new().prefix(&format!("{name}-")).tempdir_in(bed.directory);
        let directory = directory.with_context(|| format!("make a directory in {}", bed.directory))?;
        Ok(Logs { name: name.to_owned(), directory, forget: AtomicBool::new(false) })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn file(&self, process: &str) -> PathBuf {
        self.path().join(format!("{process}.log"))
    }

    /// Removes the directory with the shop.
    pub(super) fn forget_on_drop(&self) {
        self.forget.store(true, Ordering::Relaxed);
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        if !self.forget.load(Ordering::Relaxed) {
            self.directory.disable_cleanup(true);
            eprintln!("the logs of the services of `{}` are in {}", self.name, self.path().display());
        }
    }
}
