//! Looks for servers that the machine already has.

use std::path::{Path, PathBuf};

use super::Version;

/// The outcome of a search.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The first program that is new enough.
    Program { path: PathBuf, version: Version },
    /// There is none; `why` lists the ones that were passed over.
    Nothing { why: Option<String> },
}

impl Found {
    pub(super) fn skipped() -> Found {
        Found::Nothing { why: Some("TESTKIT_SERVERS is \"pinned\"".to_owned()) }
    }
}

pub(super) fn nats_server(oldest: Version) -> Found {
    first_usable(on_path("nats-server"), oldest, |_| None)
}

/// Looks on the `PATH`, then where Debian and Red Hat keep the programs that they do not put there.
pub(super) fn postgres(oldest: Version) -> Found {
    let mut candidates = on_path("postgres");
    candidates.extend(versioned(Path::new("/usr/lib/postgresql"), "", "bin/postgres"));
    candidates.extend(versioned(Path::new("/usr"), "pgsql-", "bin/postgres"));
    first_usable(candidates, oldest, |postgres| {
        (!postgres.with_file_name("initdb").exists()).then(|| "has no initdb beside it".to_owned())
    })
}

fn on_path(program: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let links = std::env::split_paths(&path).map(|directory| directory.join(program));
    // The other programs of an installation are beside the file, not beside a link to it.
    links.filter_map(|link| link.canonicalize().ok()).filter(|file| file.is_file()).collect()
}

/// `root/prefixN/program` for every N, newest first.
fn versioned(root: &Path, prefix: &str, program: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let version = name.to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((version, entry.path().join(program)))
        })
        .filter(|(_, program)| program.is_file())
        .collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    versions.into_iter().map(|(_, program)| program).collect()
}

fn first_usable(candidates: Vec<PathBuf>, oldest: Version, flaw: impl Fn(&Path) -> Option<String>) -> Found {
    let mut passed_over: Vec<String> = Vec::new();
    for path in candidates {
        let why = match Version::of(&path) {
            Ok(version) if version < oldest => format!("is {version}, older than {oldest}"),
            Ok(version) => match flaw(&path) {
                None => return Found::Program { path, version },
                Some(why) => why,
            },
            Err(error) => format!("does not tell its version ({error})"),
        };
        let reason = format!("{} {why}", path.display());
        if !passed_over.contains(&reason) {
            passed_over.push(reason);
        }
    }
    Found::Nothing { why: (!passed_over.is_empty()).then(|| passed_over.join("; ")) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(path: &Path, answer: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("#!/bin/sh\necho '{answer}'\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn passes_over_an_old_program_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        program(&old, "nats-server: v2.9.25");
        program(&new, "nats-server: v2.15.1");
        let oldest = Version::new(2, 14, 0);

        let found = first_usable(vec![old.clone(), new.clone()], oldest, |_| None);
        assert_eq!(found, Found::Program { path: new, version: Version::new(2, 15, 1) });

        let Found::Nothing { why: Some(why) } = first_usable(vec![old.clone(), old], oldest, |_| None) else {
            panic!("an old server was taken");
        };
        assert!(why.ends_with("old is 2.9.25, older than 2.14"), "{why}");
    }

    #[test]
    fn takes_the_newest_of_several_installations_by_number() {
        let dir = tempfile::tempdir().unwrap();
        for version in ["9", "15", "18", "common"] {
            program(&dir.path().join(version).join("bin/postgres"), "postgres");
        }
        let found = versioned(dir.path(), "", "bin/postgres");
        let expected: Vec<PathBuf> =
            ["18", "15", "9"].iter().map(|v| dir.path().join(v).join("bin/postgres")).collect();
        assert_eq!(found, expected);
    }
}
