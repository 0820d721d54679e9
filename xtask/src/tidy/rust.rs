//! Rust sources as syntax.

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
