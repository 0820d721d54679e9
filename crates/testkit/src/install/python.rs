//! Python packages for the tests of programs that are written in Python.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::Command;

use super::{blocking, cache};
use crate::error::{Error, Result};

/// Installs exactly these packages into the cache, once, and returns the folder for `PYTHONPATH`. `requirements` is the
/// text of a requirements file that names every package with its version; nothing else is installed.
///
/// # Errors
/// [`Error::Unavailable`] when there is no `python3` with pip, or a package cannot be had.
pub async fn python_packages(requirements: &str) -> Result<PathBuf> {
    let requirements = requirements.to_owned();
    blocking(move || {
        // Wheels with native code are for one version of the interpreter.
        let python = run("find python3", Command::new("python3").arg("--version"))?;
        let mut hasher = DefaultHasher::new();
        (&requirements, &python).hash(&mut hasher);
        cache::once(&format!("python-{:016x}", hasher.finish()), |partial| {
            eprintln!("testkit: installing Python packages into the cache, once");
            let list = tempfile::NamedTempFile::new().map_err(Error::io("make a file for the requirements"))?;
            std::fs::write(list.path(), &requirements).map_err(Error::io("write the requirements"))?;
            let quiet = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"];
            let mut install = Command::new("python3");
            install.args(["-m", "pip", "install"]).args(quiet).arg("--target").arg(partial);
            install.args([OsStr::new("-r"), list.path().as_os_str()]);
            run("install Python packages", &mut install).map(drop)
        })
    })
    .await
}

fn run(what: &str, command: &mut Command) -> Result<Vec<u8>> {
    let unavailable = |why: &str| {
        Error::Unavailable(format!("cannot {what} ({why}): run `sudo apt-get install -y python3-pip` and try again"))
    };
    let Ok(output) = command.output() else { return Err(unavailable("python3 is missing")) };
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(unavailable(said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing was said")))
}
