//! Order within a key: in the stream, the versions of a key in its source are 1, 2, 3 without a gap.

use std::collections::BTreeMap;

use super::stream::Facts;
use super::{Check, Evidence};

pub(super) fn check(evidence: &Evidence, facts: &Facts<'_>) -> Check {
    let mut check = Check::new("sequence");
    let mut versions: BTreeMap<(&str, &str), Vec<Option<i64>>> = BTreeMap::new();
    for fact in &facts.first {
        versions.entry((fact.service(), fact.key())).or_default().push(fact.key_version());
    }
    for ((service, key), seen) in &versions {
        check.item();
        check.ensure((1..).map(Some).zip(seen).all(|(expected, version)| expected == *version), || {
            format!("in the stream the facts of {service} about {key} have the versions {seen:?}")
        });
        let last = evidence.mesh.get(*service).and_then(|tables| tables.versions.get(*key)).copied();
        check.ensure(last == i64::try_from(seen.len()).ok(), || {
            format!("{service} has given out {last:?} versions of {key}, the stream has {}", seen.len())
        });
    }
    for (service, tables) in &evidence.mesh {
        for key in tables.versions.keys().filter(|key| !versions.contains_key(&(service.as_str(), key.as_str()))) {
            check.violated(format!("{service} has given out versions of {key}, of which the stream knows nothing"));
        }
    }
    check
}
