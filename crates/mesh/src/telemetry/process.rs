//! What the process uses of its machine, from `/proc`.

use std::fs;

/// Usage of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    /// User and system time since the start, whole seconds.
    pub(super) cpu_seconds: u64,
    /// Memory in RAM.
    pub(super) resident_bytes: u64,
    /// Open file descriptors.
    pub(super) open_files: u64,
}

/// Clock ticks per second in `/proc`. The kernel scales to this value for user space on every architecture that we build.
const TICKS_PER_SECOND: u64 = 100;

/// The usage as of now; none where there is no `/proc`.
pub(super) fn usage() -> Option<Usage> {
    let open_files = fs::read_dir("/proc/self/fd").ok()?.count();
    Some(Usage {
        cpu_seconds: cpu_seconds(&fs::read_to_string("/proc/self/stat").ok()?)?,
        resident_bytes: resident_bytes(&fs::read_to_string("/proc/self/status").ok()?)?,
        // The directory handle of this very count is among them.
        open_files: u64::try_from(open_files).ok()?.saturating_sub(1),
    })
}

/// `utime` and `stime` are the 14th and 15th field. The 2nd, the program's name, may hold spaces and parentheses.
fn cpu_seconds(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_after_the_name_of_the_program() {
        let stat = "42 (a (b) c) S 1 42 42 0 -1 4194304 1 0 0 0 150 50 0 0 20 0 9 0 100 1 1";
        assert_eq!(cpu_seconds(stat), Some(2));
    }

    #[test]
    fn memory_is_in_bytes() {
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t    12 kB\nThreads:\t1\n"), Some(12_288));
    }

    #[test]
    fn this_process_uses_something() {
        let usage = usage().expect("the tests run on Linux");
        assert!(usage.resident_bytes > 1_000_000, "{usage:?}");
        assert!(usage.open_files > 2, "{usage:?}");
    }
}
