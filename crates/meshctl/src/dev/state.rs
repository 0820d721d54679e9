//! The directory of a `dev` run: one run at a time, and `dev.json` while it is ready.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use crate::outcome::Failure;
use crate::target::DevRecord;

const RECORD: &str = "dev.json";
const LOCK: &str = "dev.lock";
/// How often a lock that is held is tried again, and after which pause.
const LOOKERS: u32 = 10;
const LOOK: Duration = Duration::from_millis(20);

/// A directory that a `dev` run may have its state in.
#[derive(Debug, Clone)]
pub struct StateDir {
    path: PathBuf,
}

/// The right to run there; it ends with the process, however that ends.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
    record: PathBuf,
}

impl StateDir {
    /// The directory at `path`, which need not exist.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Where a run without `--state-dir` is found by other commands: in the user's cache.
    ///
    /// # Errors
    /// A usage error when the user has no home.
    pub fn default_path() -> anyhow::Result<PathBuf> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let caches = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
        let caches =
            caches.ok_or_else(|| Failure::usage("there is no HOME to keep track of the run in: use --state-dir"))?;
        Ok(caches.join("event-mesh").join("dev"))
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the logs of the services are.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Takes the directory for a run, made if need be.
    ///
    /// # Errors
    /// A usage error when another run has it.
    pub async fn lock(&self) -> anyhow::Result<RunLock> {
        fs::create_dir_all(&self.path).with_context(|| format!("cannot make {}", self.path.display()))?;
        let file = self.lock_file(true)?;
        for attempt in 0.. {
            match file.try_lock() {
                Ok(()) => break,
                // Somebody who only looks whether there is a run lets go at once.
                Err(TryLockError::WouldBlock) if attempt < LOOKERS => tokio::time::sleep(LOOK).await,
                Err(TryLockError::WouldBlock) => return Err(taken(&self.path)),
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("cannot lock {}", self.path.display()));
                }
            }
        }
        let record = self.path.join(RECORD);
        // A run that was killed could not take its record along.
        let _ = fs::remove_file(&record);
        Ok(RunLock { _file: file, record })
    }

    /// Whether a run holds the directory at this moment, ready or not.
    ///
    /// # Errors
    /// When the lock cannot be looked at.
    pub fn is_held(&self) -> anyhow::Result<bool> {
        if !self.path.join(LOCK).exists() {
            return Ok(false);
        }
        match self.lock_file(false)?.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error).context("cannot look at the lock of the dev run"),
        }
    }

    /// The record of the run that is ready now.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn running(&self) -> anyhow::Result<Option<DevRecord>> {
        let path = self.path.join(RECORD);
        if !path.exists() || !self.is_held()? {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).map(Some).with_context(|| format!("cannot read {}", path.display()))
    }

    fn lock_file(&self, create: bool) -> anyhow::Result<File> {
        let path = self.path.join(LOCK);
        let file = File::options().create(create).read(true).append(true).open(&path);
        file.with_context(|| format!("cannot open {}", path.display()))
    }
}

fn taken(path: &Path) -> anyhow::Error {
    Failure::usage(format!(
        "a dev run has its state in {} already: end it with `meshctl dev stop`, or give this one its own --state-dir",
        path.display()
    ))
}

impl RunLock {
    /// Says that the run is ready, or that something in it has changed. Readers see the old record or the new one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn publish(&self, record: &DevRecord) -> anyhow::Result<()> {
        let partial = self.record.with_extension("json.partial");
        let write = || {
            // It holds the passwords of the databases.
            let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
            writeln!(file, "{}", serde_json::to_string_pretty(record)?)?;
            fs::rename(&partial, &self.record)
        };
        write().with_context(|| format!("cannot write {}", self.record.display()))
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // The next run removes what is left.
        let _ = fs::remove_file(&self.record);
    }
}
