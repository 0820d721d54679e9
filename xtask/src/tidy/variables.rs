//! Every variable that a program of ours reads is in the document for those who set them.

use super::{Finding, rust};
use crate::tree::{self, Tree};

const DOCUMENT: &str = "docs/configuration.md";
const PREFIXES: [&str; 7] = ["MESH_", "ORDERS_", "PAYMENTS_", "INVENTORY_", "NOTIFICATIONS_", "OBSERVER_", "TESTKIT_"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let document = tree.files.get(DOCUMENT).map(String::as_str).unwrap_or_default();
    let sources = tree.rust().filter(|(path, _)| path.contains("/src/") && !path.starts_with("xtask/"));
    let mut findings = Vec::new();
    for (path, text) in sources.filter(|(path, _)| !tree::is_test(path)) {
        for literal in rust::literals(text).iter().filter(|literal| is_variable(&literal.text)) {
            if !document.contains(&format!("`{}`", literal.text)) {
                let problem = format!("{DOCUMENT} does not tell of `{}`", literal.text);
                findings.push(Finding::new(path, literal.line, problem));
            }
        }
    }
    findings
}

fn is_variable(text: &str) -> bool {
    let is_name = |rest: &str| rest.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    PREFIXES.iter().any(|prefix| text.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && is_name(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_without_a_word_about_it_is_found() {
        let source = "fn a() { var(\"MESH_LISTEN\"); var(\"MESH_\"); var(\"TESTKIT_CACHE\"); var(\"OTHER_THING\") }";
        let found = |document| check(&Tree::of([("a/src/lib.rs", source), (DOCUMENT, document)])).len();
        assert_eq!(found(""), 2);
        assert_eq!(found("`TESTKIT_CACHE` and `MESH_LISTENER`"), 1);
        assert_eq!(found("`TESTKIT_CACHE` and `MESH_LISTEN`"), 0);
    }
}
