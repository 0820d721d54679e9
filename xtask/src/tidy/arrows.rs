//! Who may depend on whom, tests included.

use super::metadata::Graph;
use super::{Finding, metadata::Package};

/// Which packages of ours a package may use, by its folder. What is not listed here is a finding, so that a new package
/// gets its line.
const MAY_USE: [(&str, &[&str]); 14] = [
    ("crates/envelope", &[]),
    ("crates/testkit", &[]),
    ("events", &["envelope"]),
    ("crates/mesh", &["envelope", "testkit"]),
    ("services/orders", &["envelope", "events", "mesh", "testkit"]),
    ("services/payments", &["envelope", "events", "mesh", "testkit"]),
    ("services/inventory", &["envelope", "events", "mesh", "testkit"]),
    ("services/notifications", &["envelope", "events", "mesh", "testkit"]),
    ("services/observer", &["envelope", "events", "mesh", "testkit"]),
    // What a team in another repository would have.
    ("examples/loyalty", &["envelope", "events", "mesh", "testkit"]),
    ("crates/meshctl", &["envelope", "events", "mesh", "testkit"]),
    // The services only to build the program under test.
    ("tests", &["envelope", "events", "testkit", "orders", "payments", "inventory"]),
    ("bench", &["envelope", "mesh", "testkit"]),
    // `mesh` and `meshctl` only in its tests, which compare their definitions with the documents.
    ("xtask", &["mesh", "meshctl", "testkit"]),
];

/// Packages that anybody may use, so that they must not bring a runtime, a database or a broker along.
const LIGHT: [&str; 2] = ["crates/envelope", "events"];
const HEAVY: [&str; 4] = ["tokio", "sqlx", "sqlx-core", "async-nats"];

/// Features of serde_json that change what every reader and writer of the workspace does.
const JSON_FEATURES: [&str; 2] = ["arbitrary_precision", "preserve_order"];

pub(super) fn check(graph: &Graph) -> Vec<Finding> {
    let mut findings: Vec<Finding> = graph.members().flat_map(|package| check_member(graph, package)).collect();
    for package in graph.0.values().filter(|package| package.name == "serde_json") {
        for feature in JSON_FEATURES.iter().filter(|feature| package.features.contains(**feature)) {
            let problem = format!(
                "something enables `{feature}` of serde_json: find it with `cargo tree -e features -i serde_json`"
            );
            findings.push(Finding::new("Cargo.toml", 0, problem));
        }
    }
    findings
}

fn check_member(graph: &Graph, package: &Package) -> Vec<Finding> {
    let folder = package.folder.as_deref().unwrap_or_default();
    let manifest = format!("{folder}/Cargo.toml");
    let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| *known == folder) else {
        return vec![Finding::new(&manifest, 0, "say in xtask/src/tidy/arrows.rs which packages it may use")];
    };
    // A package may name itself, to have a feature in its tests.
    let ours = graph.direct(package).filter(|used| used.folder.is_some() && used.name != package.name);
    let mut findings: Vec<Finding> = ours
        .filter(|used| !allowed.contains(&used.name.as_str()))
        .map(|used| Finding::new(&manifest, 0, format!("{} must not depend on {}", package.name, used.name)))
        .collect();
    if LIGHT.contains(&folder) {
        let all = graph.all_names(package);
        let heavy = HEAVY.iter().filter(|name| all.contains(*name));
        findings.extend(heavy.map(|name| {
            Finding::new(&manifest, 0, format!("{} must not bring {name} along, not even for its tests", package.name))
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::metadata::Kind;
    use super::*;

    /// Name, folder (none for a package of others) and dependencies.
    type Sketch<'a> = (&'a str, Option<&'a str>, &'a [(Kind, &'a str)]);

    fn graph(packages: &[Sketch<'_>]) -> Graph {
        let package = |(name, folder, uses): &Sketch<'_>| {
            let dependencies = uses.iter().map(|(kind, id)| (*kind, (*id).to_owned())).collect();
            let folder = folder.map(str::to_owned);
            ((*name).to_owned(), Package { name: (*name).to_owned(), folder, dependencies, ..Package::default() })
        };
        Graph(packages.iter().map(package).collect())
    }

    fn problems(graph: &Graph) -> Vec<String> {
        check(graph).into_iter().map(|finding| finding.problem).collect()
    }

    #[test]
    fn an_arrow_that_is_not_allowed_is_found_even_in_tests() {
        let events = ("events", Some("events"), &[] as &[_]);
        let allowed = ("orders", Some("services/orders"), &[(Kind::Normal, "events")] as &[_]);
        assert!(problems(&graph(&[events, allowed])).is_empty());
        let mesh = ("mesh", Some("crates/mesh"), &[(Kind::Dev, "events")] as &[_]);
        assert_eq!(problems(&graph(&[events, mesh])), ["mesh must not depend on events"]);
        let other = ("payments", Some("services/payments"), &[(Kind::Dev, "orders")] as &[_]);
        assert_eq!(problems(&graph(&[events, allowed, other])), ["payments must not depend on orders"]);
    }

    #[test]
    fn a_runtime_that_comes_along_further_down_is_found() {
        let packages = |kind| {
            graph(&[
                ("envelope", Some("crates/envelope"), &[(kind, "middle")]),
                ("middle", None, &[(Kind::Normal, "tokio")]),
                ("tokio", None, &[]),
            ])
        };
        for kind in [Kind::Normal, Kind::Build, Kind::Dev] {
            assert_eq!(problems(&packages(kind)).len(), 1, "{kind:?}");
        }
        let not_built = graph(&[
            ("envelope", Some("crates/envelope"), &[(Kind::Normal, "middle")]),
            ("middle", None, &[(Kind::Dev, "tokio")]),
            ("tokio", None, &[]),
        ]);
        assert!(problems(&not_built).is_empty());
    }

    #[test]
    fn a_package_without_a_line_of_its_own_is_found() {
        assert_eq!(problems(&graph(&[("new", Some("crates/new"), &[])])).len(), 1);
    }

    #[test]
    fn a_feature_that_changes_every_reader_is_found() {
        let mut packages = graph(&[("serde_json", None, &[])]);
        assert!(problems(&packages).is_empty());
        let package = packages.0.get_mut("serde_json").unwrap();
        package.features.insert("arbitrary_precision".to_owned());
        assert_eq!(problems(&packages).len(), 1);
    }
}
