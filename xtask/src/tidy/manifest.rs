//! Dependencies: each has a reason, each is used, and its features are fixed in one place.

use super::Finding;
use super::metadata::{Graph, Package};
use crate::tree::Tree;

const ROOT: &str = "Cargo.toml";

pub(super) fn check(tree: &Tree, graph: &Graph) -> Vec<Finding> {
    let shared = tree.files.get(ROOT).map(|text| shared(text)).unwrap_or_default();
    let mut findings = Vec::new();
    for entry in &shared {
        if !entry.is_ours && !entry.has_reason {
            findings.push(Finding::new(ROOT, entry.line, format!("say behind `{}` why it is here", entry.name)));
        }
        let used =
            tree.ending("/Cargo.toml").any(|(_, text)| dependencies(text).any(|(_, name, _)| name == entry.name));
        if !used {
            findings.push(Finding::new(ROOT, entry.line, format!("nothing depends on `{}`", entry.name)));
        }
    }
    for member in graph.members() {
        findings.extend(check_member(tree, member, &shared));
    }
    findings
}

fn check_member(tree: &Tree, member: &Package, shared: &[Shared]) -> Vec<Finding> {
    let folder = member.folder.as_deref().unwrap_or_default();
    let path = format!("{folder}/{ROOT}");
    let Some(manifest) = tree.files.get(&path) else { return Vec::new() };
    let inside = format!("{folder}/");
    let sources: Vec<&str> = tree.rust().filter(|(path, _)| path.starts_with(&inside)).map(|(_, text)| text).collect();
    let mut findings = Vec::new();
    for (line, name, value) in dependencies(manifest) {
        let crate_name = name.replace('-', "_");
        if !sources.iter().any(|text| names_crate(text, &crate_name)) {
            findings.push(Finding::new(&path, line, format!("no source here uses `{name}`")));
        }
        let is_ours = shared.iter().any(|entry| entry.is_ours && entry.name == name);
        if value.contains("features") && !is_ours {
            let problem = format!("the features of `{name}` belong into the root, so that every build is the same");
            findings.push(Finding::new(&path, line, problem));
        }
    }
    findings
}

/// An entry of `[workspace.dependencies]`.
#[derive(Debug)]
struct Shared {
    line: usize,
    name: String,
    has_reason: bool,
    is_ours: bool,
}

fn shared(manifest: &str) -> Vec<Shared> {
    let entry = |(line, name, value): (usize, &str, &str)| Shared {
        line,
        name: name.to_owned(),
        has_reason: value.split_once(" # ").is_some_and(|(_, reason)| !reason.trim().is_empty()),
        is_ours: value.contains("path ="),
    };
    entries(manifest).filter(|(table, ..)| *table == "workspace.dependencies").map(|(_, rest)| entry(rest)).collect()
}

/// The dependencies of a member, those of its tests included: line, name, value.
fn dependencies(manifest: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    let tables = ["dependencies", "dev-dependencies", "build-dependencies"];
    entries(manifest).filter(move |(table, _)| tables.contains(table)).map(|(_, entry)| entry)
}

/// Every `name = value` with its table, as this repository writes them: one on a line.
fn entries(manifest: &str) -> impl Iterator<Item = (&str, (usize, &str, &str))> {
    let mut table = "";
    manifest.lines().enumerate().filter_map(move |(index, line)| {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            table = name;
        }
        let (key, value) = line.split_once('=').filter(|_| !line.starts_with(['#', '[']))?;
        let name = key.trim().split('.').next().unwrap_or_default();
        Some((table, (index + 1, name, value)))
    })
}

/// Whether a source names a crate: `name::`, `use name`, `extern crate name`.
fn names_crate(source: &str, name: &str) -> bool {
    source.match_indices(name).any(|(start, _)| {
        let before = source[..start].chars().next_back();
        let begins = before.is_none_or(|before| !before.is_alphanumeric() && before != '_');
        let after = source[start + name.len()..].trim_start();
        let is_used = source[..start].trim_end().ends_with("use") || source[..start].trim_end().ends_with("use ::");
        begins && (after.starts_with("::") || (is_used && after.starts_with([';', ' '])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = "\
[workspace.dependencies]
mine = { path = \"mine\" }
serde = \"1\" # data
tokio = \"1\"
unused = \"1\" # nobody knows
";

    fn problems(member: &str, source: &str) -> Vec<String> {
        let tree = Tree::of([("Cargo.toml", WORKSPACE), ("a/Cargo.toml", member), ("a/src/lib.rs", source)]);
        let package = Package { name: "a".to_owned(), folder: Some("a".to_owned()), ..Package::default() };
        let graph = Graph([("a".to_owned(), package)].into());
        check(&tree, &graph).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_dependency_has_a_reason_and_a_user() {
        let member = "[dependencies]\nserde.workspace = true\nmine.workspace = true\n[dev-dependencies]\ntokio.workspace = true\n";
        let source = "use mine::Mine;\n#[derive(serde::Serialize)]\nstruct A;\n#[tokio::test]\nasync fn a() {}";
        assert_eq!(
            problems(member, source),
            ["Cargo.toml:4: say behind `tokio` why it is here", "Cargo.toml:5: nothing depends on `unused`"]
        );
        let without = "use mine::Mine;\n// serde is not used\n#[tokio::test]\nasync fn a() {}";
        assert!(problems(member, without).contains(&"a/Cargo.toml:2: no source here uses `serde`".to_owned()));
    }

    #[test]
    fn members_add_features_to_ours_only() {
        let source = "use mine::Mine; use serde::Serialize; use tokio::main;";
        let member = |line: &str| format!("[dependencies]\nserde.workspace = true\ntokio.workspace = true\n{line}\n");
        let ours = member("mine = { workspace = true, features = [\"testing\"] }");
        assert!(!problems(&ours, source).iter().any(|problem| problem.contains("features")));
        let theirs = "[dependencies]\nmine.workspace = true\ntokio.workspace = true\nserde = { workspace = true, features = [\"rc\"] }\n";
        assert!(problems(theirs, source).iter().any(|problem| problem.contains("the features of `serde`")));
    }
}
