//! A cause comes before what follows from it.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::stream::Facts;
use super::{Check, Stored};

pub(super) fn check(facts: &Facts<'_>) -> Check {
    let mut check = Check::new("causality");
    let mut earlier: BTreeMap<Uuid, &Stored> = BTreeMap::new();
    for fact in &facts.first {
        check.item();
        let name = || format!("{} of order {} (message {})", fact.kind(), fact.key(), fact.sequence);
        check.ensure(fact.flow().is_some_and(|flow| flow.to_string() == fact.key()), || {
            format!("{} does not belong to the flow of its order", name())
        });
        match fact.cause() {
            None => check.ensure(fact.service() == "orders" && fact.hops() == Some(0), || {
                format!("{} has no cause and is no request of a customer", name())
            }),
            Some(cause) => match earlier.get(&cause) {
                None => check.violated(format!("the cause {cause} of {} is not in the stream before it", name())),
                Some(cause) => check
                    .ensure(cause.flow() == fact.flow() && fact.hops() == cause.hops().map(|hops| hops + 1), || {
                        format!("{} does not follow from {} in its own flow", name(), cause.kind())
                    }),
            },
        }
        if let Some(id) = fact.id() {
            earlier.insert(id, fact);
        }
    }
    check
}
