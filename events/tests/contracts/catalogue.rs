//! The catalogue against the code and against itself.

use std::collections::{BTreeMap, BTreeSet};

use events::{
    all,
    catalogue::{self, CatalogueError, ServiceEntry},
};

fn services() -> Vec<ServiceEntry> {
    catalogue::services().expect("readable entries")
}

#[test]
fn an_entry_is_found_by_its_service() {
    let names: Vec<_> = catalogue::names().collect();
    assert_eq!(names, ["orders", "payments", "inventory", "notifications"]);
    for name in names {
        assert_eq!(catalogue::service(name).expect("an entry").service, name);
    }
    assert!(matches!(catalogue::service("shipping"), Err(CatalogueError::UnknownService(name)) if name == "shipping"));
}

#[test]
fn the_declared_facts_are_those_of_the_code() {
    let committed: Vec<_> = services()
        .into_iter()
        .flat_map(|entry| {
            let service = entry.service;
            entry.facts.into_iter().map(move |fact| (service.clone(), fact))
        })
        .map(|(service, fact)| (service, fact.event_type, fact.revision, fact.outcome, fact.undone_by))
        .collect();
    let code: Vec<_> = all()
        .into_iter()
        .map(|fact| {
            let kinds: Vec<_> = fact.outcomes.iter().map(|outcome| outcome.kind()).collect();
            let undone_by = fact.undone_by().map(str::to_owned);
            (fact.publisher.to_owned(), fact.event_type, fact.revision, kinds, undone_by)
        })
        .collect();
    assert_eq!(committed, code);
}

#[test]
fn the_reactions_are_these() {
    let reactions: Vec<_> = services()
        .iter()
        .flat_map(|entry| entry.reactions.iter().map(|r| format!("{}: {} on {}", entry.service, r.subscriber, r.on)))
        .collect();
    assert_eq!(
        reactions,
        [
            "orders: confirm-order on inventory.inventory_reserved",
            "orders: cancel-declined-order on payments.payment_declined",
            "orders: cancel-refunded-order on payments.refund_issued",
            "payments: charge-customer on orders.order_created",
            "payments: refund-failed-order on inventory.inventory_failed",
            "payments: refund-cancelled-order on orders.order_cancelled",
            "inventory: note-order on orders.order_created",
            "inventory: reserve-stock on payments.payment_processed",
            "inventory: release-stock on orders.order_cancelled",
            "notifications: remember-customer on orders.order_created",
            "notifications: mail-confirmation on orders.order_confirmed",
            "notifications: mail-cancellation on orders.order_cancelled",
            "notifications: mail-refund on payments.refund_issued",
        ]
    );
}

/// `<domain>.<fact>` of everything that exists, with its publisher and majors.
fn published() -> BTreeMap<String, (String, BTreeSet<u16>)> {
    let mut facts: BTreeMap<String, (String, BTreeSet<u16>)> = BTreeMap::new();
    for entry in services() {
        for fact in entry.facts {
            let name = fact.event_type.fact();
            facts
                .entry(name)
                .or_insert_with(|| (entry.service.clone(), BTreeSet::new()))
                .1
                .insert(fact.event_type.major);
        }
    }
    facts
}

#[test]
fn everything_named_exists_and_only_its_owner_says_it() {
    let published = published();
    let mut names = BTreeSet::new();
    for entry in services() {
        for reaction in &entry.reactions {
            let (_, majors) = published.get(&reaction.on).unwrap_or_else(|| panic!("{} does not exist", reaction.on));
            assert_eq!(reaction.majors.len(), 1, "{}: one major of a fact at a time", reaction.subscriber);
            assert!(reaction.majors.iter().all(|major| majors.contains(major)), "{}", reaction.subscriber);
            assert!(names.insert(reaction.subscriber.clone()), "{} is there twice", reaction.subscriber);
        }
        let actions = entry.actions.iter().map(|action| &action.emits);
        for fact in entry.reactions.iter().map(|reaction| &reaction.emits).chain(actions).flatten() {
            let (publisher, _) = published.get(fact).unwrap_or_else(|| panic!("{fact} does not exist"));
            assert_eq!(*publisher, entry.service, "{fact}");
        }
    }
}

/// What leads from fact to fact. `bounded` leaves out the reactions that declare how often they speak.
fn edges(bounded: bool) -> Vec<(String, String)> {
    let reactions = services().into_iter().flat_map(|entry| entry.reactions);
    let kept = reactions.filter(|reaction| bounded || reaction.at_most_per_key.is_none());
    kept.flat_map(|reaction| reaction.emits.into_iter().map(move |emitted| (reaction.on.clone(), emitted))).collect()
}

fn reachable(from: &str, edges: &[(String, String)]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut next = vec![from.to_owned()];
    while let Some(fact) = next.pop() {
        for (_, to) in edges.iter().filter(|(on, _)| *on == fact) {
            if found.insert(to.clone()) {
                next.push(to.clone());
            }
        }
    }
    found
}

/// A refund cancels its order and a cancelled order is refunded: that cycle ends because each side speaks once per order,
/// and says so. There is no other.
#[test]
fn cycles_declare_what_ends_them() {
    let (every, unbounded) = (edges(true), edges(false));
    let on_cycle = |edges: &[(String, String)]| -> Vec<String> {
        published().into_keys().filter(|fact| reachable(fact, edges).contains(fact)).collect()
    };
    assert_eq!(on_cycle(&every), ["orders.order_cancelled", "payments.refund_issued"]);
    assert_eq!(on_cycle(&unbounded), Vec::<String>::new());
}

/// From every failure, the undo of every effect that may have happened before can be reached.
#[test]
fn failures_lead_to_every_undo() {
    let edges = edges(true);
    let facts = all();
    let name = |fact: &events::FactDeclaration| fact.event_type.fact();
    for failure in facts.iter().filter(|fact| fact.outcomes.contains(&events::Outcome::Failure)) {
        for effect in &facts {
            let Some(undo) = effect.undone_by() else { continue };
            if reachable(&name(effect), &edges).contains(&name(failure)) {
                assert!(reachable(&name(failure), &edges).contains(undo), "{} after {}", undo, failure.event_type);
            }
        }
    }
}
