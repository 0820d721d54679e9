//! Sizes. Whatever is over its limit stands in `xtask/ratchet.json` with the size that it may have at most: it may
//! shrink, it may not grow, and nothing may be added without a change of that file that a reviewer sees.

use std::collections::BTreeMap;

use anyhow::Context;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::{Finding, rust};
use crate::tree::{self, Tree};

const RATCHET: &str = "xtask/ratchet.json";

const FILE_LINES: usize = 300;
const TEST_FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 60;
const TEST_FUNCTION_LINES: usize = 100;
const MAIN_LINES: usize = 30;

/// The sizes of what is over its limit: files by path, functions by `path::name`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ratchet(BTreeMap<String, usize>);

impl Ratchet {
    pub(super) fn read(tree: &Tree) -> anyhow::Result<Self> {
        let text = tree.files.get(RATCHET).with_context(|| format!("{RATCHET} is missing"))?;
        serde_json::from_str(text).map(Self).with_context(|| format!("{RATCHET} cannot be read"))
    }

    /// The same with lower numbers where the tree allows it.
    pub(super) fn tightened(self, tree: &Tree) -> Self {
        let over: BTreeMap<String, Size> = sizes(tree).into_iter().filter(Size::is_over).map(Size::named).collect();
        let lower = |(name, most): (String, usize)| {
            let lines = over.get(&name)?.lines;
            Some((name, most.min(lines)))
        };
        Self(self.0.into_iter().filter_map(lower).collect())
    }

    pub(super) fn write(&self) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(&self.0)?;
        std::fs::write(tree::root().join(RATCHET), format!("{text}\n"))
            .with_context(|| format!("cannot write {RATCHET}"))
    }
}

/// What is over its limit and over its ratchet, and what the ratchet need not name any more.
pub(super) fn check(tree: &Tree, ratchet: &Ratchet) -> Vec<Finding> {
    let over: Vec<Size> = sizes(tree).into_iter().filter(Size::is_over).collect();
    let mut findings: Vec<Finding> = over
        .iter()
        .filter(|size| size.lines > ratchet.0.get(&size.name).copied().unwrap_or(size.limit))
        .map(|size| {
            let most = ratchet.0.get(&size.name).copied().unwrap_or(size.limit);
            Finding::new(&size.path, size.line, format!("{} has {} lines, at most {most} fit", size.name, size.lines))
        })
        .collect();
    let stale = ratchet.0.keys().filter(|name| !over.iter().any(|size| size.name == **name));
    findings.extend(stale.map(|name| {
        Finding::new(RATCHET, 0, format!("{name} is within its limit: `cargo xtask tidy --tighten` removes it"))
    }));
    findings
}

/// The size of a file or a function.
#[derive(Debug)]
struct Size {
    name: String,
    path: String,
    line: usize,
    lines: usize,
    limit: usize,
}

impl Size {
    fn is_over(&self) -> bool {
        self.lines > self.limit
    }

    fn named(self) -> (String, Self) {
        (self.name.clone(), self)
    }
}

fn sizes(tree: &Tree) -> Vec<Size> {
    let mut sizes = Vec::new();
    for (path, text) in tree.rust() {
        let in_tests = tree::is_test(path);
        let limit = if in_tests { TEST_FILE_LINES } else { FILE_LINES };
        let lines = text.lines().count();
        sizes.push(Size { name: path.to_owned(), path: path.to_owned(), line: 0, lines, limit });
        if let Some(file) = rust::parsed(text) {
            let mut functions = Functions { path, in_tests, sizes: &mut sizes };
            functions.visit_file(&file);
        }
    }
    sizes
}

struct Functions<'a> {
    path: &'a str,
    in_tests: bool,
    sizes: &'a mut Vec<Size>,
}

impl Functions<'_> {
    fn add(&mut self, attributes: &[syn::Attribute], signature: &syn::Signature, body: &syn::Block) {
        let (start, end) = (signature.span().start().line, body.span().end().line);
        let limit = if self.in_tests || rust::for_tests(attributes) {
            TEST_FUNCTION_LINES
        } else if signature.ident == "main" && self.path.ends_with("main.rs") {
            MAIN_LINES
        } else {
            FUNCTION_LINES
        };
        let name = format!("{}::{}", self.path, signature.ident);
        self.sizes.push(Size { name, path: self.path.to_owned(), line: start, lines: end + 1 - start, limit });
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let around = self.in_tests;
        self.in_tests |= rust::for_tests(&module.attrs);
        visit::visit_item_mod(self, module);
        self.in_tests = around;
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.attrs, &function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.attrs, &function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.add(&function.attrs, &function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        format!("pub fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    fn problems(path: &str, text: &str, ratchet: &[(&str, usize)]) -> Vec<String> {
        let ratchet = Ratchet(ratchet.iter().map(|(name, most)| ((*name).to_owned(), *most)).collect());
        check(&Tree::of([(path, text)]), &ratchet).into_iter().map(|finding| finding.problem).collect()
    }

    #[test]
    fn a_function_fits_up_to_its_limit() {
        assert!(problems("crates/a/src/lib.rs", &function(60), &[]).is_empty());
        let over = problems("crates/a/src/lib.rs", &function(61), &[]);
        assert_eq!(over, ["crates/a/src/lib.rs::long has 61 lines, at most 60 fit"]);
        assert!(problems("crates/a/src/tests.rs", &function(100), &[]).is_empty());
        assert_eq!(problems("tests/flows.rs", &function(101), &[]).len(), 1);
    }

    #[test]
    fn main_and_tests_inside_a_source_have_limits_of_their_own() {
        let main = |lines| function(lines).replace("long", "main");
        assert!(problems("crates/a/src/main.rs", &main(30), &[]).is_empty());
        assert_eq!(problems("crates/a/src/main.rs", &main(31), &[]).len(), 1);
        let inside = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(90));
        assert!(problems("crates/a/src/lib.rs", &inside, &[]).is_empty());
    }

    #[test]
    fn a_file_fits_up_to_its_limit() {
        let comment = |lines| "// a line\n".repeat(lines);
        assert!(problems("crates/a/src/lib.rs", &comment(300), &[]).is_empty());
        assert_eq!(problems("crates/a/src/lib.rs", &comment(301), &[]).len(), 1);
        assert!(problems("crates/a/src/tests.rs", &comment(600), &[]).is_empty());
        assert_eq!(problems("crates/a/tests/all.rs", &comment(601), &[]).len(), 1);
    }

    #[test]
    fn the_ratchet_lets_nothing_grow() {
        let name = "crates/a/src/lib.rs::long";
        assert!(problems("crates/a/src/lib.rs", &function(70), &[(name, 70)]).is_empty());
        assert!(problems("crates/a/src/lib.rs", &function(65), &[(name, 70)]).is_empty());
        assert_eq!(problems("crates/a/src/lib.rs", &function(71), &[(name, 70)]).len(), 1);
        let stale = problems("crates/a/src/lib.rs", &function(60), &[(name, 70)]);
        assert!(stale[0].contains("within its limit"), "{stale:?}");
    }

    #[test]
    fn tightening_lowers_and_removes_and_never_adds() {
        let tree = Tree::of([("a/src/lib.rs", function(65).as_str()), ("b/src/lib.rs", function(99).as_str())]);
        let before = [("a/src/lib.rs::long", 70), ("gone.rs::long", 80)];
        let before = Ratchet(before.map(|(name, most)| (name.to_owned(), most)).into());
        assert_eq!(before.tightened(&tree), Ratchet([("a/src/lib.rs::long".to_owned(), 65)].into()));
    }
}
