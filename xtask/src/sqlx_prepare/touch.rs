//! A source that looks new to cargo for the length of one compilation.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;

/// A source whose time was set to now. Given back its time, it makes no other build do its work again.
#[derive(Debug)]
pub(super) struct Touched {
    path: PathBuf,
    before: SystemTime,
    now: SystemTime,
}

impl Touched {
    /// Writes the source anew as it is.
    pub(super) fn new(path: &Path) -> anyhow::Result<Self> {
        let touch = || {
            let before = fs::metadata(path)?.modified()?;
            fs::write(path, fs::read(path)?)?;
            Ok(Self { path: path.to_owned(), before, now: fs::metadata(path)?.modified()? })
        };
        touch().map_err(|error: std::io::Error| error).with_context(|| format!("cannot touch {}", path.display()))
    }

    /// Gives the source back its time, unless somebody has written it meanwhile.
    pub(super) fn restore(self) -> anyhow::Result<()> {
        let restore = || {
            let file = File::options().append(true).open(&self.path)?;
            if file.metadata()?.modified()? == self.now {
                file.set_modified(self.before)?;
            }
            std::io::Result::Ok(())
        };
        restore().with_context(|| format!("cannot restore the time of {}", self.path.display()))
    }
}
