//! No transaction is cancelled half-way: a future of the database that is dropped leaves its connection in a transaction.
//!
//! This is a heuristic on tokens. It finds a time limit or a `select!` in a function that begins or ends a transaction,
//! and anywhere in the files whose functions run inside one. It does not find a limit around a call of a function that
//! begins one further down.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::{Finding, rust};
use crate::tree::{self, Tree};

/// Files and folders whose functions run inside a transaction of their caller.
const INSIDE: [&str; 13] = [
    "crates/mesh/src/tx.rs",
    "crates/mesh/src/inbox.rs",
    "crates/mesh/src/dead_letter.rs",
    "crates/mesh/src/dead_letter/claim.rs",
    "crates/mesh/src/outbox/",
    "crates/mesh/src/relay/claim.rs",
    "crates/mesh/src/relay/floor.rs",
    "crates/mesh/src/relay/settle.rs",
    "crates/mesh/src/http/transaction.rs",
    "crates/mesh/src/delivery/attempts.rs",
    "services/orders/src/",
    "services/payments/src/",
    "services/inventory/src/",
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| !tree::is_test(path) && !path.starts_with("xtask/")) {
        let marks = marks(text);
        let inside = INSIDE.iter().any(|place| path.starts_with(place));
        let functions = function_lines(text);
        for limit in marks.iter().filter(|mark| mark.what == What::Limit) {
            let around = functions.iter().filter(|lines| lines.contains(&limit.line));
            let mut near = around.flat_map(|lines| marks.iter().filter(|mark| lines.contains(&mark.line)));
            if inside || near.any(|mark| mark.what == What::Transaction) {
                let problem =
                    "a time limit or `select!` beside a transaction would cancel it half-way: run it in a task";
                findings.push(Finding::new(path, limit.line, problem));
            }
        }
    }
    findings
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// Something that drops a future before its end.
    Limit,
    /// The begin or the end of a transaction.
    Transaction,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    line: usize,
    what: What,
}

fn marks(source: &str) -> Vec<Mark> {
    let mut found = Vec::new();
    if let Ok(tokens) = source.parse::<TokenStream>() {
        collect(tokens, &mut found);
    }
    found
}

fn collect(tokens: TokenStream, found: &mut Vec<Mark>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            collect(group.stream(), found);
        }
        let TokenTree::Ident(name) = token else { continue };
        let is_method = index > 0 && is_punctuation(&tokens[index - 1], '.');
        let next = tokens.get(index + 1);
        let is_call = next.is_some_and(is_parenthesis);
        let what = match name.to_string().as_str() {
            "select" if next.is_some_and(|next| is_punctuation(next, '!')) => What::Limit,
            // As a method it is an option of a client.
            "timeout" | "timeout_at" if is_call && !is_method => What::Limit,
            "begin" | "begin_with" | "begin_root" | "begin_reaction" | "commit" | "rollback" if is_call => {
                What::Transaction
            }
            _ => continue,
        };
        found.push(Mark { line: name.span().start().line, what });
    }
}

fn is_punctuation(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punctuation) if punctuation.as_char() == character)
}

fn is_parenthesis(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis)
}

/// The lines of each function that is no test.
fn function_lines(source: &str) -> Vec<RangeInclusive<usize>> {
    let mut functions = Functions(Vec::new());
    if let Some(file) = rust::parsed(source) {
        functions.visit_file(&file);
    }
    functions.0
}

struct Functions(Vec<RangeInclusive<usize>>);

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !rust::for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.0.push(function.span().start().line..=function.span().end().line);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.0.push(function.span().start().line..=function.span().end().line);
        visit::visit_impl_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of([(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_limit_in_a_function_with_a_transaction_is_found() {
        let text = "async fn a(pool: Pool) {\n    let tx = timeout(LIMIT, pool.begin()).await;\n}";
        assert_eq!(lines("crates/mesh/src/a.rs", text), [2]);
        let text = "impl A {\n    async fn a(tx: Tx) {\n        tokio::select! {\n            _ = tx.commit() => {}\n        }\n    }\n}";
        assert_eq!(lines("crates/mesh/src/a.rs", text), [3]);
    }

    #[test]
    fn a_limit_elsewhere_in_the_file_is_not() {
        let text =
            "async fn a(pool: Pool) {\n    pool.begin().await;\n}\nasync fn b() {\n    timeout(LIMIT, c()).await;\n}";
        assert!(lines("crates/mesh/src/a.rs", text).is_empty());
        assert_eq!(lines("crates/mesh/src/tx.rs", text), [5]);
    }

    #[test]
    fn an_option_of_a_client_is_no_limit() {
        let text = "async fn a(pool: Pool) {\n    Client::new().timeout(LIMIT);\n    pool.begin().await;\n}";
        assert!(lines("crates/mesh/src/a.rs", text).is_empty());
    }
}
