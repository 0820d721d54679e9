//! The guard: a shell that outlives this process and cleans up after it.
//!
//! `Drop` does not run when a test is killed, and a parent-death signal follows the *thread* that forked, which the test
//! harness ends long before the process. A pipe has neither flaw: its end is seen whenever and however this process goes.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal};

use crate::account;
use crate::error::{Error, Result};

/// The program of the guard.
const SCRIPT: &str = include_str!("guard.sh");

/// The guard of this process; started with the first child or scratch directory.
static GUARD: Mutex<Option<Guard>> = Mutex::new(None);

struct Guard {
    /// Its end is what the guard waits for. Never closed by us: the kernel does it when this process is gone.
    pipe: ChildStdin,
    scratch: PathBuf,
}

/// The directory that is removed when this process ends, however it ends.
pub(crate) fn scratch() -> Result<PathBuf> {
    with(|guard| Ok(guard.scratch.clone())).map_err(Error::io("start the guard that removes scratch directories"))
}

/// Has `pid` ended when this process ends: by `signal`, and shortly after by SIGKILL to its process group.
pub(super) fn hold(pid: Pid, signal: Signal) -> Result<()> {
    let signal = if signal == Signal::QUIT { "QUIT" } else { "KILL" };
    with(|guard| guard.pipe.write_all(format!("hold {} {signal}\n", pid.as_raw_nonzero()).as_bytes()))
        .map_err(Error::io("register a child with the guard"))
}

/// Forgets `pid`, which was reaped.
pub(super) fn free(pid: Pid) {
    // A guard that is gone has nothing to forget.
    let _ = with(|guard| guard.pipe.write_all(format!("free {}\n", pid.as_raw_nonzero()).as_bytes()));
}

fn with<T>(act: impl FnOnce(&mut Guard) -> io::Result<T>) -> io::Result<T> {
    let mut slot = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    match slot.as_mut() {
        Some(guard) => act(guard),
        None => act(slot.insert(Guard::start()?)),
    }
}

impl Guard {
    fn start() -> io::Result<Guard> {
        let scratch = tempfile::Builder::new().prefix("event-mesh-").tempdir_in(scratch_base())?.keep();
        // The account that runs PostgreSQL for root passes through here to its own directory.
        let mode = if account::is_root() { 0o711 } else { 0o700 };
        std::fs::set_permissions(&scratch, Permissions::from_mode(mode))?;
        let script = scratch.join("guard.sh");
        std::fs::write(&script, SCRIPT)?;
        let mut shell = Command::new("sh")
            .args([&script, &scratch])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pipe = shell.stdin.take().ok_or_else(|| io::Error::other("the guard has no standard input"))?;
        Ok(Guard { pipe, scratch })
    }
}

/// The temporary directory, or `/tmp` where the account that runs PostgreSQL for root could not enter it.
fn scratch_base() -> PathBuf {
    let chosen = std::env::temp_dir();
    if account::is_root() && !account::anyone_may_enter(&chosen) { Path::new("/tmp").to_owned() } else { chosen }
}
