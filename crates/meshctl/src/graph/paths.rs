//! What can be reached from where. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// From each node to those that follow it directly.
pub(super) type Edges<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Everything that follows `from`, in one step or more. `from` itself only when it lies on a cycle.
pub(super) fn reachable<'a>(from: &str, edges: &Edges<'a>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&'a str> = edges.get(from).into_iter().flatten().copied().collect();
    while let Some(node) = next.pop() {
        if found.insert(node) {
            next.extend(edges.get(node).into_iter().flatten().copied());
        }
    }
    found
}

/// The sets of nodes of which each reaches each other one, sorted; a node that follows itself is one.
pub(super) fn components<'a>(edges: &Edges<'a>) -> Vec<Vec<&'a str>> {
    let reach: BTreeMap<&'a str, BTreeSet<&'a str>> =
        edges.keys().map(|node| (*node, reachable(node, edges))).collect();
    let mut found: Vec<Vec<&'a str>> = Vec::new();
    for (node, reached) in &reach {
        if !reached.contains(node) || found.iter().any(|component| component.contains(node)) {
            continue;
        }
        let back = |other: &&&'a str| reach.get(**other).is_some_and(|from| from.contains(node));
        found.push(reached.iter().filter(back).copied().collect());
    }
    found
}
