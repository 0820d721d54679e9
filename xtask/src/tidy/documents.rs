//! Documents: links lead somewhere, and what is promised names a test that exists.

mod markdown;

use super::Finding;
use crate::tree::Tree;
use markdown::Line;

/// The document whose numbered invariants each name a test.
const ARCHITECTURE: &str = "ARCHITECTURE.md";
const INVARIANTS: &str = "Invariants";
/// A table with such a column is one of promises.
const HELD_BY: &str = "held by";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending(".md") {
        let lines = markdown::prose(text);
        findings.extend(links(tree, path, &lines));
        findings.extend(test_references(tree, path, &lines));
        findings.extend(promises(path, &lines));
        findings.extend(quotes(tree, path, text));
    }
    let architecture = tree.files.get(ARCHITECTURE).map(|text| markdown::prose(text)).unwrap_or_default();
    findings.extend(invariants(&architecture));
    findings
}

fn links(tree: &Tree, path: &str, lines: &[Line<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for line in lines {
        for target in markdown::links(line.text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.to_owned() } else { beside(path, file) };
            let folder = format!("{}/", file.trim_end_matches('/'));
            let leads = match tree.files.get(&file) {
                Some(text) => anchor.is_empty() || markdown::anchors(text).iter().any(|known| known == anchor),
                None => anchor.is_empty() && tree.files.keys().any(|path| path.starts_with(&folder)),
            };
            if !leads {
                findings.push(Finding::new(path, line.number, format!("the link to `{target}` leads nowhere")));
            }
        }
    }
    findings
}

/// The path of a link as seen from the root.
fn beside(path: &str, link: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn test_references(tree: &Tree, path: &str, lines: &[Line<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for line in lines {
        for (file, test) in markdown::test_references(line.text) {
            let exists = tree.files.get(file).is_some_and(|text| text.contains(&format!("fn {test}(")));
            if !exists {
                findings.push(Finding::new(path, line.number, format!("there is no test `{test}` in `{file}`")));
            }
        }
    }
    findings
}

/// Code below `<!-- from: path -->` stands in that file, word for word.
fn quotes(tree: &Tree, path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, source, code) in markdown::quotes(text) {
        if !tree.files.get(source).is_some_and(|text| text.contains(code)) {
            findings.push(Finding::new(path, line, format!("this is not what stands in `{source}`")));
        }
    }
    findings
}

/// Every row of a table of promises names a test.
fn promises(path: &str, lines: &[Line<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_promises = false;
    for (index, line) in lines.iter().enumerate() {
        let is_row = line.text.starts_with('|');
        let is_first = index == 0 || !lines[index - 1].text.starts_with('|');
        if is_row && is_first {
            in_promises = line.text.to_lowercase().contains(HELD_BY);
        }
        let is_ruler = line.text.chars().all(|character| "|-: ".contains(character));
        if is_row && in_promises && !is_first && !is_ruler && markdown::test_references(line.text).is_empty() {
            findings.push(Finding::new(path, line.number, "a promise that no test holds: name one, or take it out"));
        }
    }
    findings
}

/// Every numbered invariant names a test.
fn invariants(lines: &[Line<'_>]) -> Vec<Finding> {
    let section = format!("## {INVARIANTS}");
    let Some(start) = lines.iter().position(|line| line.text == section) else {
        return vec![Finding::new(ARCHITECTURE, 0, format!("has no section `{INVARIANTS}`"))];
    };
    let section: Vec<&Line<'_>> = lines[start + 1..].iter().take_while(|line| !line.text.starts_with("## ")).collect();
    let is_invariant = |line: &&Line<'_>| line.text.starts_with("### ");
    let parts = section.chunk_by(|_, next| !is_invariant(next)).filter(|part| is_invariant(&part[0]));
    let without = parts.filter(|part| part.iter().all(|line| markdown::test_references(line.text).is_empty()));
    without.map(|part| Finding::new(ARCHITECTURE, part[0].number, "an invariant that no test holds")).collect()
}

#[cfg(test)]
mod tests;
