//! Versions as servers print them.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A version of up to three numbers; missing ones are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl Version {
    /// A version from its numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Version {
        Version { major, minor, patch }
    }

    /// Asks a program for its version.
    ///
    /// # Errors
    /// [`Error::Io`] when it does not run, [`Error::Unusable`] when its answer holds no version.
    pub(crate) fn of(program: &Path) -> Result<Version> {
        let output = Command::new(program)
            .arg("--version")
            .output()
            .map_err(Error::io(format!("run {} --version", program.display())))?;
        let answer = String::from_utf8_lossy(&output.stdout);
        answer.split_whitespace().find_map(|word| word.parse().ok()).ok_or_else(|| {
            Error::Unusable(format!(
                "{} --version answers {:?}, which names no version",
                program.display(),
                answer.trim()
            ))
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)?;
        if self.patch > 0 { write!(out, ".{}", self.patch) } else { Ok(()) }
    }
}

impl FromStr for Version {
    type Err = std::num::ParseIntError;

    /// Reads `15.18`, `v2.15.1` or `19beta1`; what follows the numbers is left out.
    fn from_str(text: &str) -> Result<Version, Self::Err> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let numbers = text.split(|c: char| c != '.' && !c.is_ascii_digit()).next().unwrap_or_default();
        let mut parts = numbers.split('.');
        let major = parts.next().unwrap_or_default().parse()?;
        let mut next = || parts.next().filter(|part| !part.is_empty()).map_or(Ok(0), str::parse);
        Ok(Version { major, minor: next()?, patch: next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_answer(answer: &str) -> Option<Version> {
        answer.split_whitespace().find_map(|word| word.parse().ok())
    }

    #[test]
    fn reads_what_the_servers_print() {
        assert_eq!(in_answer("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"), Some(Version::new(15, 18, 0)));
        assert_eq!(in_answer("postgres (PostgreSQL) 19beta1"), Some(Version::new(19, 0, 0)));
        assert_eq!(in_answer("nats-server: v2.15.1"), Some(Version::new(2, 15, 1)));
        assert_eq!(in_answer("nats-server: v2.14.0-RC.1"), Some(Version::new(2, 14, 0)));
        assert_eq!(in_answer("command not found"), None);
    }

    #[test]
    fn orders_by_number_and_not_by_text() {
        assert!(Version::new(2, 9, 25) < Version::new(2, 14, 0));
        assert!(Version::new(2, 15, 0) < Version::new(2, 15, 1));
    }
}
