//! The checker is worth something only while it shares nothing with what it checks.

use std::path::Path;

use anyhow::{Result, ensure};

/// Crates whose code is checked.
const CHECKED: [&str; 6] = ["orders", "payments", "inventory", "mesh", "events", "envelope"];

#[test]
fn the_checker_uses_no_code_of_what_it_checks() -> Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/checker");
    let mut files = 0;
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        files += 1;
        for line in std::fs::read_to_string(&path)?.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let used = CHECKED.iter().find(|name| line.contains(&format!("{name}::")));
            ensure!(used.is_none(), "{} uses {used:?}: {line}", path.display());
            ensure!(!line.contains("crate::shop"), "{} uses the harness: {line}", path.display());
        }
    }
    ensure!(files > 8, "only {files} files were looked at");
    Ok(())
}
