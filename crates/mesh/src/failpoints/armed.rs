//! The points in a build that has them.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::NAMES;

/// Passes a point: does what was armed for it, or nothing.
pub(crate) fn hit(name: &'static str) {
    debug_assert!(NAMES.contains(&name), "{name} is not a listed fail-point");
    fail::fail_point!(name);
}

/// One armed fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    point: &'static str,
    /// Which hit of the process, from 1; none means every one.
    hit: Option<u64>,
    action: Action,
}

/// What happens at the hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// The process dies without a chance to clean up.
    Kill,
    /// The process stands still until somebody continues it.
    Stop,
    /// The task waits.
    Sleep(Duration),
    /// The task panics.
    Panic,
}

/// Why a list of faults cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FaultError {
    #[error("`{0}` is not of the form point=hit:action")]
    Form(String),
    #[error("no fail-point is called `{name}`; there are {}", NAMES.join(", "))]
    Point { name: String },
    #[error("`{0}` is no hit: expected a number from 1, or *")]
    Hit(String),
    #[error("`{0}` is no action: expected kill, stop, sleep:MILLISECONDS or panic")]
    Action(String),
}

/// The faults that a configuration asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Faults(Vec<Fault>);

impl FromStr for Faults {
    type Err = FaultError;

    /// Reads `point=hit:action;...`; the error is about the first part that cannot be read.
    fn from_str(faults: &str) -> Result<Self, FaultError> {
        let parts = faults.split(';').map(str::trim).filter(|fault| !fault.is_empty());
        parts.map(parse_one).collect::<Result<_, _>>().map(Self)
    }
}

fn parse_one(fault: &str) -> Result<Fault, FaultError> {
    let form = || FaultError::Form(fault.to_owned());
    let (point, rest) = fault.split_once('=').ok_or_else(form)?;
    let (hit, action) = rest.split_once(':').ok_or_else(form)?;
    let known = NAMES.iter().find(|name| **name == point);
    Ok(Fault {
        point: known.ok_or_else(|| FaultError::Point { name: point.to_owned() })?,
        hit: match hit {
            "*" => None,
            number => Some(number.parse().ok().filter(|hit| *hit > 0).ok_or(FaultError::Hit(number.to_owned()))?),
        },
        action: parse_action(action)?,
    })
}

fn parse_action(action: &str) -> Result<Action, FaultError> {
    let unknown = || FaultError::Action(action.to_owned());
    Ok(match action.split_once(':') {
        None if action == "kill" => Action::Kill,
        None if action == "stop" => Action::Stop,
        None if action == "panic" => Action::Panic,
        Some(("sleep", milliseconds)) => {
            Action::Sleep(Duration::from_millis(milliseconds.parse().map_err(|_| unknown())?))
        }
        _ => return Err(unknown()),
    })
}

/// Arms every point: all count their hits and log the first, so that a suite can tell which were ever reached; those in
/// `faults` act as well.
pub(crate) fn arm(faults: &Faults) {
    let mut by_point: HashMap<&str, Vec<Fault>> = HashMap::new();
    for fault in &faults.0 {
        by_point.entry(fault.point).or_default().push(*fault);
    }
    for name in NAMES {
        let hits = AtomicU64::new(0);
        let faults = by_point.remove(name).unwrap_or_default();
        let armed = fail::cfg_callback(name, move || {
            let hit = hits.fetch_add(1, Ordering::Relaxed) + 1;
            if hit == 1 {
                tracing::info!(point = name, "fail-point reached");
            }
            for fault in faults.iter().filter(|fault| fault.hit.is_none_or(|wanted| wanted == hit)) {
                tracing::warn!(point = name, hit, action = ?fault.action, "injecting a fault");
                act(name, fault.action);
            }
        });
        if let Err(error) = armed {
            tracing::error!(point = name, error, "the fail-point cannot be armed");
        }
    }
}

#[expect(clippy::panic, reason = "the fault that was asked for")]
fn act(name: &str, action: Action) {
    match action {
        Action::Kill => signal(Signal::KILL),
        Action::Stop => signal(Signal::STOP),
        Action::Sleep(duration) => sleep(duration),
        Action::Panic => panic!("fail-point {name}"),
    }
}

fn signal(signal: Signal) {
    if let Err(error) = kill_process(getpid(), signal) {
        tracing::error!(%error, ?signal, "the process cannot signal itself");
    }
}

/// Blocks this task. On a runtime with several threads the others take over its queue meanwhile.
fn sleep(duration: Duration) {
    let several = Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if several { tokio::task::block_in_place(|| park(duration)) } else { park(duration) }
}

fn park(duration: Duration) {
    let until = Instant::now() + duration;
    while let Some(rest) = until.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero()) {
        std::thread::park_timeout(rest);
    }
}

#[cfg(test)]
mod tests;
