//! Rust sources as syntax.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use crate::tree::Tree;

/// A source that cannot be read as Rust would pass every other check.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let unreadable = |(path, text): (&str, &str)| {
        let error = syn::parse_file(text).err()?;
        Some(Finding::new(path, error.span().start().line, format!("cannot be read as Rust: {error}")))
    };
    tree.rust().filter_map(unreadable).collect()
}

/// The syntax of a source; none where [`check`] complains.
pub(super) fn parsed(text: &str) -> Option<syn::File> {
    syn::parse_file(text).ok()
}

/// Whether one of the attributes makes a test, or is only there for tests.
pub(super) fn for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let last = attribute.path().segments.last().map(|segment| segment.ident.to_string());
        match last.as_deref() {
            Some("test") => true,
            Some("cfg") => attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test")),
            _ => false,
        }
    })
}

/// A string in a source.
#[derive(Debug)]
pub(super) struct Literal {
    pub(super) line: usize,
    pub(super) text: String,
}

/// The string literals of a source, those inside macros included, without documentation.
pub(super) fn literals(source: &str) -> Vec<Literal> {
    let mut found = Vec::new();
    if let Ok(tokens) = source.parse::<TokenStream>() {
        collect(tokens, &mut found);
    }
    found
}

fn collect(tokens: TokenStream, found: &mut Vec<Literal>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) if is_documentation(&group) => {}
            TokenTree::Group(group) => collect(group.stream(), found),
            TokenTree::Literal(literal) => {
                if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                    found.push(Literal { line: text.span().start().line, text: text.value() });
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// A doc comment arrives as `[doc = ".."]`.
fn is_documentation(group: &proc_macro2::Group) -> bool {
    group.delimiter() == Delimiter::Bracket
        && matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc")
}
