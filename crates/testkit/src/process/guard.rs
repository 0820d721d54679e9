//! The guard: a shell that outlives this process and cleans up after it.
//!
//! `Drop` does not run when a test is killed, and a parent-death signal follows the *thread* that forked, which the test
//! harness ends long before the process. A pipe has neither flaw: its end is seen whenever and however this process goes.

use std::fs::{self, Permissions};
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

/// Containers often have 64 MiB, which is too little.
const MEMORY_MIN_BYTES: u64 = 2 << 30;

/// The guard of this process; started with the first child or scratch directory.
static GUARD: Mutex<Option<Guard>> = Mutex::new(None);

struct Guard {
    /// Its end is what the guard waits for. Never closed by us: the kernel does it when this process is gone.
    pipe: ChildStdin,
    scratch: Scratch,
}

/// The directories that are removed when this process ends, however it ends.
#[derive(Clone)]
pub(crate) struct Scratch {
    /// In the temporary directory.
    pub(crate) disk: PathBuf,
    /// In memory, where there is enough of it: for files that need not survive even a crash of the machine.
    pub(crate) memory: Option<PathBuf>,
}

/// The scratch directories of this process.
pub(crate) fn scratch() -> Result<Scratch> {
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
        let disk = scratch_in(&temporary())?;
        let memory = roomy_memory().and_then(|memory| scratch_in(memory).ok());
        let script = disk.join("guard.sh");
        fs::write(&script, SCRIPT)?;
        let mut shell = Command::new("sh")
            .args([&script, &disk])
            .args(&memory)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pipe = shell.stdin.take().ok_or_else(|| io::Error::other("the guard has no standard input"))?;
        Ok(Guard { pipe, scratch: Scratch { disk, memory } })
    }
}

fn scratch_in(base: &Path) -> io::Result<PathBuf> {
    let scratch = tempfile::Builder::new().prefix("event-mesh-").tempdir_in(base)?.keep();
    // The account that runs PostgreSQL for root passes through here to its own directory.
    let mode = if account::is_root() { 0o711 } else { 0o700 };
    fs::set_permissions(&scratch, Permissions::from_mode(mode))?;
    Ok(scratch)
}

/// The temporary directory, or `/tmp` where the account that runs PostgreSQL for root could not enter it.
fn temporary() -> PathBuf {
    let chosen = std::env::temp_dir();
    if account::is_root() && !account::anyone_may_enter(&chosen) { Path::new("/tmp").to_owned() } else { chosen }
}

/// Where Linux keeps files in memory, if there is room for a server and some hundred databases.
fn roomy_memory() -> Option<&'static Path> {
    let memory = Path::new("/dev/shm");
    let space = rustix::fs::statvfs(memory).ok()?;
    (space.f_bavail.saturating_mul(space.f_frsize) >= MEMORY_MIN_BYTES).then_some(memory)
}
