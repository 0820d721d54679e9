//! The children of a process that is not ours to wait for, as Linux lists them.

use std::fs;

use rustix::process::{Pid, Signal};

use super::{ChildProcess, KILL_GRACE};
use crate::wait;

/// A process of the machine as `/proc` shows it.
struct Entry {
    state: char,
    parent: i32,
}

/// Kills a server together with the processes that it has made, and returns when all of them are gone.
pub(crate) async fn kill_with_children(server: &ChildProcess) {
    // A stopped server makes no more children, and buries none: their numbers stay theirs.
    server.stop();
    let children = children(server.pid);
    for child in &children {
        // It may have ended meanwhile.
        let _ = rustix::process::kill_process(*child, Signal::KILL);
    }
    server.kill9().await;
    let gone = wait::until("its children to be gone", KILL_GRACE, || async {
        let alive = children.iter().filter(|child| is_alive(**child)).count();
        if alive == 0 { Ok(()) } else { Err(alive) }
    });
    // What the kernel cannot end in this time it will end some time: the next start waits for it as well.
    let _ = gone.await;
}

fn children(parent: Pid) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
    numbers.filter(|number| entry(*number).is_some_and(|entry| entry.parent == parent.as_raw_nonzero().get())).collect()
}

/// One that is dead and only waits to be buried is not alive.
fn is_alive(number: Pid) -> bool {
    entry(number).is_some_and(|entry| entry.state != 'Z')
}

fn entry(number: Pid) -> Option<Entry> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", number.as_raw_nonzero())).ok()?;
    // The name before it may hold anything, parentheses and spaces included.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some(Entry { state: fields.next()?.chars().next()?, parent: fields.next()?.parse().ok()? })
}
