//! Words that do not belong here: names that say nothing, work that was put off, paths of one machine.

use super::Finding;
use crate::tree::{self, Tree};

/// A file or folder with such a name collects what has no place.
const EMPTY_NAMES: [&str; 8] = ["common", "util", "utils", "manager", "managers", "helper", "helpers", "misc"];

/// In code: what is not done, not run, or silenced.
const IN_CODE: [(&str, &str); 6] = [
    ("todo!", "do it, or leave it out"),
    ("unimplemented!", "do it, or leave it out"),
    ("dbg!", "left from a search"),
    ("#[ignore", "a test that never runs proves nothing: it runs, or it goes"),
    ("#[allow", "`#[expect(.., reason = \"..\")]` goes away with its cause"),
    ("#![allow", "`#![expect(.., reason = \"..\")]` goes away with its cause"),
];

/// In tests.
const IN_TESTS: [(&str, &str); 1] = [("sleep(", "a test waits on a predicate or a signal, see `testkit::wait`")];

/// Anywhere, as a word of its own.
const ANYWHERE: [(&str, &str); 8] = [
    ("FIXME", "mend it, or open an issue"),
    ("TODO", "do it, or open an issue"),
    ("HACK", "say what it is and why"),
    ("/home/", "a path of one machine"),
    ("/root/", "a path of one machine"),
    ("/Users/", "a path of one machine"),
    ("/tmp/", "a path of one machine: take a directory that the test owns"),
    ("in a real system", "this is one"),
];

/// What lists the words cannot do without them.
const HERE: &str = "xtask/src/tidy/words.rs";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files.iter().filter(|(path, _)| *path != HERE && *path != "Cargo.lock") {
        let mut names = path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
        if let Some(name) = names.find(|name| EMPTY_NAMES.contains(name)) {
            findings.push(Finding::new(path, 0, format!("`{name}` says nothing: name it after what is in it")));
        }
        let code: &[(&str, &str)] = if path.ends_with(".rs") { &IN_CODE } else { &[] };
        let tests: &[(&str, &str)] = if path.ends_with(".rs") && tree::is_test(path) { &IN_TESTS } else { &[] };
        for (index, line) in text.lines().enumerate() {
            let found = code.iter().filter(|(word, _)| line.contains(word));
            let found = found.chain(ANYWHERE.iter().chain(tests).filter(|(word, _)| has_word(line, word)));
            findings.extend(found.map(|(word, why)| Finding::new(path, index + 1, format!("`{word}`: {why}"))));
        }
    }
    findings
}

/// Whether the word stands in the line and is not a part of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let is_inside = |character: char| character.is_alphanumeric() || character == '_' || character == '-';
    let may_end_inside = word.ends_with(['/', '(']);
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        // A slash before makes it a part of a path that begins elsewhere, and so does a variable.
        let begins = before.is_none_or(|character| !is_inside(character) && !"./}".contains(character));
        begins && (may_end_inside || after.is_none_or(|character| !is_inside(character)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of([(path, text)])).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_name_that_says_nothing_is_found_in_files_and_folders() {
        assert_eq!(found("crates/a/src/utils.rs", "").len(), 1);
        assert_eq!(found("crates/a/src/common/order.rs", "").len(), 1);
        assert!(found("crates/a/src/commonwealth.rs", "").is_empty());
    }

    #[test]
    fn put_off_work_is_found_where_it_is() {
        assert_eq!(found("a.rs", "fn a() {\n    todo!()\n}"), ["a.rs:2: `todo!`: do it, or leave it out"]);
        assert_eq!(found("a.rs", "#[ignore = \"slow\"]").len(), 1);
        assert_eq!(found("a.yaml", "# FIXME later").len(), 1);
        assert!(found("a.md", "nothing is `#[ignore]`d, no todo! either").is_empty());
    }

    #[test]
    fn a_test_that_sleeps_is_found() {
        assert_eq!(found("tests/e2e/a.rs", "    tokio::time::sleep(SECOND).await;").len(), 1);
        assert!(found("tests/e2e/a.rs", "    failpoint(\"api.before_commit=1:sleep:50\");").is_empty());
        assert!(found("crates/a/src/poll.rs", "    tokio::time::sleep(SECOND).await;").is_empty());
    }

    #[test]
    fn a_path_of_one_machine_is_no_part_of_another_path() {
        assert_eq!(found("a.sh", "cd /home/somebody").len(), 1);
        assert_eq!(found("a.rs", "let place = \"/tmp/x\";").len(), 1);
        assert!(found("a.rs", "let place = \"/srv/home/.cache\"; let other = \"$PWD/tmp\";").is_empty());
    }
}
