//! The flow declaration against the catalogue.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use events::{Outcome, all, catalogue, flow};

fn named(outcome: fn(&Outcome) -> bool) -> Vec<String> {
    let facts = all().into_iter().filter(|fact| fact.outcomes.iter().any(outcome));
    facts.map(|fact| fact.event_type.fact()).collect()
}

#[test]
fn entry_and_ends_are_those_of_the_facts() {
    let order = flow::order();
    assert_eq!(vec![order.entry], named(|outcome| *outcome == Outcome::Entry));
    assert_eq!(order.terminal, named(|outcome| *outcome == Outcome::End));
    assert_eq!(flow::all().len(), 1);
}

/// Whoever owes a step can settle it: it hears one of the facts that open the step and says one that settles it.
#[test]
fn the_owner_of_a_step_can_settle_it() {
    for step in flow::order().steps {
        let entry = catalogue::service(&step.owner).expect("the owner has an entry");
        let hears = |fact: &String| *fact == step.after || step.given.as_ref() == Some(fact);
        let reacts =
            entry.reactions.iter().any(|r| hears(&r.on) && r.emits.iter().any(|said| step.expect.contains(said)));
        let acts = entry.actions.iter().any(|action| action.emits.iter().any(|said| step.expect.contains(said)));
        assert!(reacts || acts, "{step:?}");
    }
}

/// Every effect but the entry's own is owed its undo once the order is cancelled, and every failure is answered.
#[test]
fn nothing_is_left_undone() {
    let steps = flow::order().steps;
    let cancelled = "orders.order_cancelled";
    for fact in all() {
        let name = fact.event_type.fact();
        if let Some(undo) = fact.undone_by().filter(|undo| *undo != cancelled) {
            let owed = steps.iter().any(|step| {
                step.after == name && step.given.as_deref() == Some(cancelled) && step.expect == [undo.to_owned()]
            });
            assert!(owed, "{undo} after {name}");
        }
        if fact.outcomes.contains(&Outcome::Failure) {
            let answered = steps.iter().any(|step| step.after == name || step.given.as_ref() == Some(&name));
            assert!(answered, "{name}");
        }
    }
}

/// The deadline of the order is later than the longest chain of punctual steps: created, paid, out of stock, refunded,
/// cancelled is four steps of thirty seconds.
#[test]
fn the_order_may_take_as_long_as_its_steps() {
    let steps = flow::order().steps;
    let (whole, rest): (Vec<_>, Vec<_>) = steps.into_iter().partition(|step| step.within > Duration::from_secs(30));
    assert_eq!(whole.len(), 1);
    assert_eq!((whole[0].owner.as_str(), whole[0].within), ("orders", Duration::from_secs(120)));
    assert!(rest.iter().all(|step| step.within == Duration::from_secs(30)));
}

/// The deadline is what the step says that only an end settles.
#[test]
fn the_deadline_is_that_of_the_whole_order() {
    assert_eq!(flow::order().deadline(), Some(Duration::from_secs(120)));
}

/// Generated from the declaration, so `BLESS=1` may write it anew.
#[test]
fn the_committed_flows_are_the_declared_ones() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("flows.json");
    let text = format!("{}\n", serde_json::to_string_pretty(&flow::all()).expect("JSON"));
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &text).expect("a writable folder");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "flows.json is not what flow.rs declares; BLESS=1 writes it");
    assert_eq!(serde_json::from_str::<Vec<flow::Flow>>(&committed).expect("flows"), flow::all(), "read back");
}

/// The form that observers in other languages read.
#[test]
fn a_flow_is_plain_json() {
    let json = serde_json::to_value(flow::order()).expect("JSON");
    assert_eq!(json["entry"], "orders.order_created");
    assert_eq!(json["steps"][0]["within_seconds"], 120);
    assert_eq!(json["steps"][1].get("given"), None);
    let owners: BTreeSet<_> =
        json["steps"].as_array().expect("steps").iter().map(|step| step["owner"].as_str()).collect();
    assert_eq!(owners, BTreeSet::from([Some("inventory"), Some("orders"), Some("payments")]));
}
