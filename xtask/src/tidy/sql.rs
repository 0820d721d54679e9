//! SQL that this system must not contain. Looks at migrations and at every string literal that begins like a statement.

use super::{Finding, rust};
use crate::tree::Tree;

/// Words that a statement begins with.
const VERBS: [&str; 16] = [
    "select", "insert", "update", "delete", "with", "create", "alter", "drop", "set", "lock", "notify", "listen",
    "unlisten", "copy", "do", "merge",
];

/// The files that may look beyond a sequence number, because they prove the floor that makes it safe.
const CURSOR_FILES: [&str; 2] = ["crates/mesh/src/relay/claim.rs", "crates/mesh/src/relay/floor.rs"];

/// Where servers of tests are started and looked at.
const SERVERS_OF_TESTS: &str = "crates/testkit/";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending(".sql") {
        findings.extend(in_statement(path, 1, text));
    }
    for (path, text) in tree.rust().filter(|(path, _)| !path.starts_with("xtask/")) {
        for literal in rust::literals(text) {
            if is_statement(&literal.text) {
                findings.extend(in_statement(path, literal.line, &literal.text));
            } else if !path.starts_with(SERVERS_OF_TESTS) && lowers_durability(&literal.text) {
                findings.push(Finding::new(path, literal.line, DURABILITY));
            }
        }
    }
    findings
}

const DURABILITY: &str = "durability is a setting of the server and is not touched here";

fn is_statement(text: &str) -> bool {
    let first = words(text).next().unwrap_or_default();
    VERBS.contains(&first.to_lowercase().as_str()) && text.trim().contains(char::is_whitespace)
}

fn in_statement(path: &str, first_line: usize, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split("--").next().unwrap_or_default().to_lowercase();
        let mut found = |problem: &str| findings.push(Finding::new(path, first_line + index, problem));
        if is_notification(&line) {
            found("NOTIFY takes a lock of the whole server at commit: wake by the signal, poll for the truth");
        }
        if words(&line).any(is_session_lock) {
            found("a session lock outlives its transaction and is lost behind a pooler: use pg_advisory_xact_lock");
        }
        if !CURSOR_FILES.contains(&path) && is_cursor(&line) {
            found("rows are taken by visibility: a cursor over `seq` skips what commits late");
        }
        if !path.starts_with(SERVERS_OF_TESTS) && lowers_durability(&line) {
            found(DURABILITY);
        }
    }
    findings
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric() && character != '_').filter(|word| !word.is_empty())
}

/// `notify a`, `listen a`, or the function. A name and no more, so that prose like "listen for signals" is none.
fn is_notification(line: &str) -> bool {
    let is_name = |text: &str| text.chars().all(|character| character.is_alphanumeric() || "_\"*".contains(character));
    let is_statement = |statement: &str| {
        let (verb, channel) = statement.trim().split_once(' ').unwrap_or_default();
        ["notify", "listen", "unlisten"].contains(&verb) && is_name(channel.trim())
    };
    words(line).any(|word| word == "pg_notify") || line.split([';', ',']).any(is_statement)
}

fn is_session_lock(word: &str) -> bool {
    (word.starts_with("pg_advisory_") || word.starts_with("pg_try_advisory_")) && !word.contains("_xact_")
}

fn is_cursor(line: &str) -> bool {
    line.match_indices("seq").any(|(start, word)| {
        let begins = line[..start].chars().next_back().is_none_or(|before| !before.is_alphanumeric() && before != '_');
        begins && line[start + word.len()..].trim_start().starts_with('>')
    })
}

/// Names a setting that durability rests on, other than to look at it.
fn lowers_durability(text: &str) -> bool {
    let settings = ["synchronous_commit", "fsync", "full_page_writes"];
    let mut places = settings.iter().flat_map(|setting| text.match_indices(setting));
    places.any(|(start, _)| {
        let before = text[..start].trim_end_matches([' ', '(', '\'']);
        !before.ends_with("current_setting") && !before.ends_with("show")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let findings = check(&Tree::of([(path, text)]));
        findings.into_iter().map(|finding| (finding.line, finding.problem)).collect()
    }

    #[test]
    fn a_notification_is_found_in_macros_and_migrations() {
        let rust = "fn a() {\n    sqlx::query!(\n        \"select pg_notify('wake', '')\"\n    );\n}";
        let findings = found("crates/mesh/src/a.rs", rust);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].0, 3);
        assert_eq!(found("migrations/mesh/0002.sql", "select 1;\nNOTIFY wake;").len(), 1);
        assert_eq!(found("a.rs", "fn a() { q(\"listen wake\") }").len(), 1);
        assert_eq!(found("a.rs", "fn a() { q(\"notify wake, 'now'\") }").len(), 1);
    }

    #[test]
    fn the_same_words_in_prose_are_no_sql() {
        let prose = "/// select a listener and notify it\nfn a() { panic!(\"nobody to notify\") }";
        assert!(found("a.rs", prose).is_empty());
        assert!(found("a.rs", "fn a() { b.context(\"listen on {address}\") }").is_empty());
        assert!(found("m.sql", "-- no notify here\nselect 1").is_empty());
    }

    #[test]
    fn a_session_lock_is_found_and_a_lock_of_the_transaction_is_not() {
        assert_eq!(found("a.rs", "const A: &str = \"select pg_advisory_lock($1)\";").len(), 1);
        assert_eq!(found("a.rs", "const A: &str = \"select pg_try_advisory_lock($1)\";").len(), 1);
        assert_eq!(found("a.rs", "const A: &str = \"select pg_advisory_unlock_all()\";").len(), 1);
        assert!(found("a.rs", "const A: &str = \"select pg_try_advisory_xact_lock($1)\";").is_empty());
    }

    #[test]
    fn a_cursor_is_found_outside_the_files_that_prove_their_floor() {
        let cursor = "const A: &str = r#\"select seq\nfrom mesh.outbox o\nwhere o.seq > $1\"#;";
        let findings = found("crates/mesh/src/relay/reader.rs", cursor);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].0, 3);
        assert!(found(CURSOR_FILES[0], cursor).is_empty());
        assert!(found("a.rs", "const A: &str = \"select 1 from t where stream_seq > 1 and seq = 2\";").is_empty());
    }

    #[test]
    fn durability_is_not_lowered() {
        assert_eq!(found("a.rs", "const A: &str = \"set local synchronous_commit = off\";").len(), 1);
        assert_eq!(found("a.rs", "const A: &str = \"-c fsync=off\";").len(), 1);
        assert_eq!(found("a.rs", "const A: &str = \"select set_config('fsync', 'off', true)\";").len(), 1);
        assert!(found("a.rs", "const A: &str = \"select current_setting('synchronous_commit')\";").is_empty());
        assert!(found("crates/testkit/src/postgres.rs", "const A: &str = \"fsync=off\";").is_empty());
    }
}
