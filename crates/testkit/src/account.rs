//! The operating-system account that runs PostgreSQL, which refuses to be run by root.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::{Error, Result};

/// An account of the system, by its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Whether this process runs as root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The account that PostgreSQL has to run as: `None` is the current one, which is right for everyone but root.
pub(crate) fn for_postgres() -> Result<Option<Account>> {
    if !is_root() {
        return Ok(None);
    }
    let accounts = fs::read_to_string("/etc/passwd").map_err(Error::io("read /etc/passwd"))?;
    let find = |wanted| accounts.lines().filter_map(parse).find(|account: &Account| account.name == wanted);
    find("postgres").or_else(|| find("nobody")).map(Some).ok_or_else(|| {
        Error::Unavailable(
            "PostgreSQL cannot be run by root and there is no other account for it: run `useradd --system postgres`"
                .to_owned(),
        )
    })
}

/// Reads one line of `/etc/passwd`; root under another name is no choice.
fn parse(line: &str) -> Option<Account> {
    let mut fields = line.split(':');
    let name = fields.next()?.to_owned();
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    (uid != 0).then_some(Account { name, uid, gid })
}

/// Whether every account may pass through `path`; what does not exist yet will be made so.
pub(crate) fn anyone_may_enter(path: &Path) -> bool {
    directories(path).all(|directory| directory.mode() & 0o001 != 0)
}

impl Account {
    /// Whether this account may pass through `path`.
    pub(crate) fn may_enter(&self, path: &Path) -> bool {
        directories(path).all(|directory| {
            let owned = directory.uid() == self.uid && directory.mode() & 0o100 != 0;
            owned || directory.mode() & 0o001 != 0
        })
    }
}

fn directories(path: &Path) -> impl Iterator<Item = Metadata> {
    path.ancestors().filter_map(|directory| fs::metadata(directory).ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn reads_the_passwd_line_and_never_answers_root() {
        let nobody = Account { name: "nobody".into(), uid: 65534, gid: 65533 };
        assert_eq!(parse("nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin"), Some(nobody));
        assert_eq!(parse("postgres:x:0:0::/root:/bin/bash"), None);
        assert_eq!(parse("# comment"), None);
    }

    #[test]
    fn a_closed_ancestor_closes_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert!(anyone_may_enter(&inner.join("not-yet")));
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!anyone_may_enter(&inner));
        let owner = Account { name: "me".into(), uid: rustix::process::geteuid().as_raw(), gid: 0 };
        assert!(owner.may_enter(&inner));
        assert!(!Account { uid: owner.uid + 1, ..owner }.may_enter(&inner));
    }
}
