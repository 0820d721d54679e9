//! Every way in which one order can go, exhaustively: the three services' decisions on a bus in memory that delivers in
//! any order, tells facts again under new ids, and lets the customer and the deadline cancel at any moment.
//!
//! It runs the same pure tables that the services run; only what their stores do is played here. Real processes, brokers
//! and faults are the business of the other suites: they can show that something goes wrong, this one that nothing can.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod world;

use std::collections::{BTreeMap, HashSet, VecDeque};

use world::{Fact, Resources, Step, World};

/// Visits every world that can be reached, and returns those in which nothing is left to deliver.
fn explore(resources: Resources) -> Vec<World> {
    let first = World::with_a_placed_order(resources);
    let mut seen = HashSet::from([format!("{first:?}")]);
    let mut open = VecDeque::from([first]);
    let mut quiet = Vec::new();
    while let Some(world) = open.pop_front() {
        world.check();
        if world.is_quiet() {
            world.check_end();
            quiet.push(world.clone());
        }
        for step in world.steps() {
            let next = world.after(step);
            if seen.insert(format!("{next:?}")) {
                open.push_back(next);
            }
        }
    }
    quiet
}

/// How often each set of facts was the whole story.
fn stories(quiet: &[World]) -> BTreeMap<Vec<Fact>, usize> {
    let mut stories = BTreeMap::new();
    for world in quiet {
        *stories.entry(world.said().collect()).or_default() += 1;
    }
    stories
}

#[test]
fn every_interleaving_ends_legally_with_money_and_stock_conserved() {
    for funds in [true, false] {
        for stock in [true, false] {
            let quiet = explore(Resources { funds, stock });
            assert!(!quiet.is_empty(), "nothing was explored");
        }
    }
}

#[test]
fn every_story_that_is_told_of_an_order_can_happen_and_no_other() {
    use Fact::{
        InventoryFailed as Failed, InventoryReleased as Released, InventoryReserved as Reserved,
        OrderCancelled as Cancelled, OrderConfirmed as Confirmed, OrderCreated as Created, PaymentDeclined as Declined,
        PaymentProcessed as Paid, RefundIssued as Refunded,
    };
    let cases: [(Resources, Vec<Vec<Fact>>); 3] = [
        (
            Resources { funds: true, stock: true },
            vec![
                vec![Created, Confirmed, Paid, Reserved],
                // Cancelled while it was in flight: before the charge, before the reservation, after it.
                vec![Created, Cancelled, Declined],
                vec![Created, Cancelled, Paid, Refunded, Failed],
                vec![Created, Cancelled, Paid, Refunded, Reserved, Released],
            ],
        ),
        (
            Resources { funds: true, stock: false },
            vec![vec![Created, Cancelled, Declined], vec![Created, Cancelled, Paid, Refunded, Failed]],
        ),
        (Resources { funds: false, stock: true }, vec![vec![Created, Cancelled, Declined]]),
    ];
    for (resources, expected) in cases {
        let mut expected: Vec<Vec<Fact>> = expected
            .into_iter()
            .map(|mut story| {
                story.sort_unstable();
                story
            })
            .collect();
        expected.sort_unstable();
        let told: Vec<Vec<Fact>> = stories(&explore(resources)).into_keys().collect();
        assert_eq!(told, expected, "{resources:?}");
    }
}

#[test]
fn without_a_cancellation_the_resources_alone_decide_the_end() {
    for funds in [true, false] {
        for stock in [true, false] {
            let mut world = World::with_a_placed_order(Resources { funds, stock });
            while let Some(step) = world.steps().into_iter().find(|step| matches!(step, Step::Deliver(..))) {
                world = world.after(step);
            }
            world.check_end();
            assert_eq!(world.said().any(|fact| fact == Fact::OrderConfirmed), funds && stock);
        }
    }
}
