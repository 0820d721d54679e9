//! The logs of the service processes, kept when a test fails.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use super::Bed;

/// The directory with one file per replica.
#[derive(Debug)]
pub(super) struct Logs {
    name: String,
    directory: PathBuf,
    forget: AtomicBool,
}

impl Logs {
    /// Makes the directory anew.
    pub(super) fn create(bed: Bed, name: &str) -> Result<Logs> {
        let directory = Path::new(bed.directory).join("shops").join(name);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).with_context(|| format!("make {}", directory.display()))?;
        Ok(Logs { name: name.to_owned(), directory, forget: AtomicBool::new(false) })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn file(&self, process: &str) -> PathBuf {
        self.directory.join(format!("{process}.log"))
    }

    pub(super) fn forget_on_drop(&self) {
        self.forget.store(true, Ordering::Relaxed);
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        if self.forget.load(Ordering::Relaxed) {
            let _ = std::fs::remove_dir_all(&self.directory);
        } else {
            eprintln!("the logs of the services of `{}` are in {}", self.name, self.directory.display());
        }
    }
}
