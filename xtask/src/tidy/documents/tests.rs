use super::*;

const HELD: &str = "## Invariants\n\n### 1. It holds\n\nBecause of `a/tests/all.rs::it_holds`.\n";

fn problems(path: &str, text: &str) -> Vec<String> {
    let mut tree = Tree::of([
        (ARCHITECTURE, HELD),
        ("docs/other.md", "# Other\n\n## Second part: `code`, and more\n"),
        ("a/tests/all.rs", "#[test]\nfn it_holds() {}\n"),
    ]);
    tree.files.insert(path.to_owned(), text.to_owned());
    check(&tree).into_iter().filter(|finding| finding.path == path).map(|finding| finding.to_string()).collect()
}

#[test]
fn a_link_leads_to_a_file_a_folder_or_a_heading() {
    let good = "[a](../ARCHITECTURE.md) [b](other.md#second-part-code-and-more) [`c`](../a/tests) [d](#here)\n# Here\n\
                [e](https://example.org/nothing)\n```\n[f](gone.md)\n```\nand `[g](gone.md)`\n";
    assert_eq!(problems("docs/x.md", good), [] as [&str; 0]);
    for bad in ["[a](gone.md)", "[a](other.md#third)", "[a](#gone)", "[a](../b)", "[`a`](gone.md)", "[a]: gone.md"] {
        assert_eq!(problems("docs/x.md", bad).len(), 1, "{bad}");
    }
}

#[test]
fn a_named_test_exists() {
    assert!(problems("README.md", "see `a/tests/all.rs::it_holds`").is_empty());
    assert_eq!(problems("README.md", "see `a/tests/all.rs::it_held`").len(), 1);
    assert_eq!(problems("README.md", "see `b/tests/all.rs::it_holds`").len(), 1);
    assert_eq!(problems("README.md", "see `a/tests/all.rs::it_hold`").len(), 1);
}

#[test]
fn quoted_code_stands_where_it_is_quoted_from() {
    let quote = "Look:\n\n<!-- from: a/tests/all.rs -->\n```rust\nfn it_holds() {}\n```\n";
    assert!(problems("README.md", quote).is_empty());
    let other = quote.replace("it_holds() {}", "it_holds() { }");
    assert_eq!(problems("README.md", &other), ["README.md:3: this is not what stands in `a/tests/all.rs`"]);
    assert_eq!(problems("README.md", &quote.replace("```rust", "Rust:")).len(), 1);
}

#[test]
fn every_row_of_a_table_of_promises_names_a_test() {
    let table = "| promise | held by |\n|---|---|\n| one | `a/tests/all.rs::it_holds` |\n| two | review |\n";
    assert_eq!(problems("README.md", table), ["README.md:4: a promise that no test holds: name one, or take it out"]);
    assert!(problems("README.md", &table.replace("held by", "where")).is_empty());
}

#[test]
fn every_invariant_names_a_test() {
    let two = format!("{HELD}\n### 2. So does this\n\nSurely.\n\n## Later\n\n`a/tests/all.rs::it_holds`\n");
    assert_eq!(problems(ARCHITECTURE, &two), ["ARCHITECTURE.md:7: an invariant that no test holds"]);
    assert_eq!(problems(ARCHITECTURE, "# Nothing\n"), ["ARCHITECTURE.md: has no section `Invariants`"]);
}
