//! A run in the background: `dev --detach` and `dev stop`.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use testkit::wait;
use tokio::process::{Child, Command};

use super::state::StateDir;
use super::table::Table;
use super::{Dev, Signals, family};
use crate::outcome::{Failure, Outcome};
use crate::output::{Format, say};
use crate::target::DevRecord;

/// A first start installs servers and builds services.
const READY_WITHIN: Duration = Duration::from_secs(20 * 60);
/// Services drain, servers write what they have.
const STOPPED_WITHIN: Duration = Duration::from_secs(90);
/// Pause between two looks at the state directory.
const LOOK: Duration = Duration::from_millis(50);

/// Starts a run that outlives this process, and returns when it is ready.
pub(super) async fn start(dev: &Dev, state: &StateDir, kept: bool, format: Format) -> anyhow::Result<Outcome> {
    if state.is_held()? {
        // Told by the run itself otherwise, but into its log.
        state.lock().await?;
    }
    std::fs::create_dir_all(state.path()).with_context(|| format!("cannot make {}", state.path().display()))?;
    let log_path = state.path().join("dev.log");
    let log = File::create(&log_path).with_context(|| format!("cannot write {}", log_path.display()))?;
    let mut child = command(dev, state, kept)?
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("cannot start the run in the background")?;
    let mut told = Signals::new()?;
    let record = tokio::select! {
        record = ready(&mut child, state) => record,
        () = told.end() => {
            end(child.id())?;
            child.wait().await?;
            return Ok(Outcome::No);
        }
    };
    match record? {
        Some(record) => format.print(&Table::new(record, state.logs()))?,
        None => anyhow::bail!("the run did not come up:\n{}", std::fs::read_to_string(&log_path)?.trim_end()),
    }
    Ok(Outcome::Yes)
}

/// The record of the run, or nothing when it has ended instead.
async fn ready(child: &mut Child, state: &StateDir) -> anyhow::Result<Option<DevRecord>> {
    let deadline = tokio::time::Instant::now() + READY_WITHIN;
    while tokio::time::Instant::now() < deadline {
        if child.try_wait()?.is_some() {
            return Ok(None);
        }
        let record = state.running()?.filter(|record| child.id() == Some(record.pid));
        if record.is_some() {
            return Ok(record);
        }
        tokio::time::sleep(LOOK).await;
    }
    end(child.id())?;
    anyhow::bail!("the run was not ready within {} minutes", READY_WITHIN.as_secs() / 60)
}

fn command(dev: &Dev, state: &StateDir, kept: bool) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program's own file")?);
    command.args(["dev", "--daemon", "--replicas", &dev.replicas.to_string()]);
    // A run that keeps nothing finds its place by itself.
    command.env_remove("MESH_STATE_DIR");
    if kept {
        command.arg("--state-dir").arg(state.path());
    }
    if let Some(seconds) = dev.seconds {
        command.args(["--seconds", &seconds.to_string()]);
    }
    if let Some(folder) = &dev.folder.dir {
        command.arg("--dir").arg(folder);
    }
    command.args(dev.empty.then_some("--empty")).args(dev.no_build.then_some("--no-build"));
    Ok(command)
}

/// Ends the run that has its state there, and returns when nothing of it is left.
pub(super) async fn stop(state: &StateDir) -> anyhow::Result<Outcome> {
    let Some(record) = state.running()? else {
        if state.is_held()? {
            return Err(Failure::usage("the run there is only starting: try again when it is ready"));
        }
        say(format_args!("no run has its state in {}", state.path().display()));
        return Ok(Outcome::Yes);
    };
    // Known before they begin to end: what is left of a family without its head is not found any more.
    let family = family::of(record.pid);
    end(Some(record.pid))?;
    let gone = wait::until("the end of the run", STOPPED_WITHIN, || async {
        let left: Vec<String> = family.iter().filter(|pid| family::lives(**pid)).map(u32::to_string).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("processes {}", left.join(", "))) }
    });
    gone.await?;
    say("stopped");
    Ok(Outcome::Yes)
}

/// Asks a process to end; one that has ended already is no failure.
fn end(pid: Option<u32>) -> anyhow::Result<()> {
    let pid = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    match pid.map(|pid| kill_process(pid, Signal::TERM)) {
        None | Some(Ok(()) | Err(rustix::io::Errno::SRCH)) => Ok(()),
        Some(Err(error)) => Err(error).context("cannot end the run"),
    }
}
