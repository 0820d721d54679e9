//! What is released is never edited: committed schemas equal the code, and every file equals its hash in `lock.json`.
//!
//! `BLESS=1 cargo test -p events` writes what is new (a schema of a new revision, lock entries of new files). It never
//! overwrites.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Once,
};

use events::FactDeclaration;
use serde_json::Value;
use sha2::{Digest, Sha256};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas")
}

/// `schemas/<domain>.<fact>`.
pub(crate) fn folder(declared: &FactDeclaration) -> PathBuf {
    let event_type = &declared.event_type;
    root().join(event_type.fact())
}

fn schema_path(declared: &FactDeclaration) -> PathBuf {
    let version = format!("v{}", declared.event_type.major);
    folder(declared).join(version).join(format!("r{}.schema.json", declared.revision))
}

fn schema_text(declared: &FactDeclaration) -> String {
    let mut text = serde_json::to_string_pretty(&declared.schema).expect("a schema is JSON");
    text.push('\n');
    text
}

pub(crate) fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file under `folder`, sorted.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn lock_path() -> PathBuf {
    root().join("lock.json")
}

fn lock() -> BTreeMap<String, String> {
    fs::read(lock_path()).map_or_else(|_| BTreeMap::new(), |text| serde_json::from_slice(&text).expect("a lock"))
}

/// Every released file by its path below `schemas/`, with its hash.
fn hashes() -> BTreeMap<String, String> {
    let released = files(&root()).into_iter().filter(|path| *path != lock_path());
    released
        .map(|path| {
            let name = path.strip_prefix(root()).expect("below the root").to_str().expect("UTF-8").to_owned();
            let hash = Sha256::digest(read(&path)).iter().map(|byte| format!("{byte:02x}")).collect();
            (name, hash)
        })
        .collect()
}

/// Writes what is new, once for all tests, when asked to.
fn bless() {
    static BLESSED: Once = Once::new();
    BLESSED.call_once(|| {
        if std::env::var_os("BLESS").is_none() {
            return;
        }
        for declared in events::all() {
            let path = schema_path(&declared);
            if !path.exists() {
                fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a writable folder");
                fs::write(&path, schema_text(&declared)).expect("a writable folder");
            }
        }
        let mut locked = lock();
        for (name, hash) in hashes() {
            locked.entry(name).or_insert(hash);
        }
        let mut text = serde_json::to_string_pretty(&locked).expect("a lock is JSON");
        text.push('\n');
        fs::write(lock_path(), text).expect("a writable folder");
    });
}

#[test]
fn the_newest_schema_is_the_code() {
    bless();
    for declared in events::all() {
        let path = schema_path(&declared);
        let committed = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; BLESS=1 writes a new revision", path.display()));
        assert!(
            committed == schema_text(&declared),
            "{} differs from the code. What is released stays as it is: raise REVISION for an added optional member or \
             code, MAJOR for anything else, then run with BLESS=1",
            path.display()
        );
    }
}

/// No revision, major or fact is in the files that the code does not know.
#[test]
fn the_code_knows_every_released_schema() {
    bless();
    for path in files(&root()).iter().filter(|path| path.to_string_lossy().ends_with(".schema.json")) {
        let schema: Value = serde_json::from_slice(&read(path)).expect("JSON");
        let id = schema["$id"].as_str().expect("an $id");
        let known = events::all().iter().any(|declared| {
            let event_type = &declared.event_type;
            let fact = format!("urn:mesh:schema:{}:", event_type.fact());
            let version = id.strip_prefix(&fact).and_then(|rest| rest.split_once(':'));
            version.is_some_and(|(major, revision)| {
                let (major, revision) = (major.parse().unwrap_or(u16::MAX), revision.parse().unwrap_or(u16::MAX));
                let read = major == event_type.major || declared.lifts_from.contains(&major);
                let newest = if major == event_type.major { declared.revision } else { u16::MAX };
                let version = format!("v{major}/r{revision}.schema.json");
                read && revision <= newest && *path == folder(declared).join(version)
            })
        });
        assert!(known, "{}: {id}", path.display());
    }
}

#[test]
fn released_files_are_never_edited_or_removed() {
    bless();
    let (locked, found) = (lock(), hashes());
    for (name, hash) in &locked {
        assert_eq!(found.get(name), Some(hash), "{name} was edited or removed after its release");
    }
    let new: Vec<_> = found.keys().filter(|name| !locked.contains_key(*name)).collect();
    assert!(new.is_empty(), "not in lock.json: {new:?}; BLESS=1 adds them");
}

/// Readers of other languages compare bytes too: members in order, one newline at the end.
#[test]
fn schema_files_are_in_their_one_form() {
    bless();
    for path in files(&root()).iter().filter(|path| path.to_string_lossy().ends_with(".schema.json")) {
        let text = String::from_utf8(read(path)).expect("UTF-8");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(text, format!("{}\n", serde_json::to_string_pretty(&value).expect("JSON")), "{}", path.display());
    }
}
