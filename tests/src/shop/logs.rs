//! The logs of the service processes, kept when a test fails.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use tempfile::TempDir;

use super::Bed;

/// The directory with one file per replica. It vanishes with the shop, and with the process of the tests at the latest; a
/// shop that was not found in order leaves a copy.
#[derive(Debug)]
pub(super) struct Logs {
    name: String,
    directory: TempDir,
    bed: Bed,
    forget: AtomicBool,
}

impl Logs {
    pub(super) fn create(bed: Bed, name: &str) -> Result<Logs> {
        let directory = testkit::scratch::dir(name)?;
        Ok(Logs { name: name.to_owned(), directory, bed, forget: AtomicBool::new(false) })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn file(&self, process: &str) -> PathBuf {
        self.directory.path().join(format!("{process}.log"))
    }

    /// Leaves no copy.
    pub(super) fn forget_on_drop(&self) {
        self.forget.store(true, Ordering::Relaxed);
    }

    /// Copies the logs to where they outlive the tests.
    fn keep(&self) -> std::io::Result<PathBuf> {
        let kept = tempfile::Builder::new().prefix(&format!("{}-", self.name)).tempdir_in(self.bed.directory)?.keep();
        for entry in std::fs::read_dir(self.directory.path())? {
            let file = entry?.path();
            std::fs::copy(&file, kept.join(file.file_name().unwrap_or_default()))?;
        }
        Ok(kept)
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        if self.forget.load(Ordering::Relaxed) {
            return;
        }
        let kept = self.keep();
        let place =
            kept.as_deref().map_or_else(|error| format!("lost: {error}"), |path: &Path| path.display().to_string());
        eprintln!("the logs of the services of `{}`: {place}", self.name);
    }
}
