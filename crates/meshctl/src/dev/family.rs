//! The processes of a run, as the system tells them.

use std::fs;

/// A process with everything that descends from it, as far as the system tells. Of a system without `/proc`, it alone.
pub(super) fn of(pid: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = all().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(&elder) = family.get(next) {
        family.extend(parents.iter().filter(|(_, parent)| *parent == elder).map(|(child, _)| *child));
        next += 1;
    }
    family
}

/// Whether the process still does anything. One that only waits to be counted by its parent does not.
pub(super) fn lives(pid: u32) -> bool {
    fields(pid).is_some_and(|fields| !fields.starts_with(['Z', 'X']))
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(pid: u32) -> Option<u32> {
    fields(pid)?.split_whitespace().nth(1)?.parse().ok()
}

/// What `/proc/<pid>/stat` says behind the name, which may hold anything: state, parent and the rest.
fn fields(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_child_is_family_until_it_ends() {
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        assert!(of(std::process::id()).contains(&child.id()) && lives(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!lives(child.id()));
    }
}
