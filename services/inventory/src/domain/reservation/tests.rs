use std::{collections::BTreeMap, fmt::Write as _};

use uuid::Uuid;

use super::{Decision, Held, Input, Reservation, on};
use crate::domain::Demand;

fn demand() -> Demand {
    serde_json::from_str(r#"[{"sku": "cup", "quantity": 2}]"#).unwrap()
}

fn held(demand: Demand) -> Held {
    Held { reservation_id: Uuid::from_u128(1), demand }
}

fn inputs() -> [(Input, &'static str); 3] {
    [
        (Input::OrderCreated(demand()), "`OrderCreated`"),
        (Input::PaymentProcessed, "`PaymentProcessed`"),
        (Input::OrderCancelled, "`OrderCancelled`"),
    ]
}

fn states() -> [(Option<Reservation>, &'static str); 8] {
    [
        (None, "nothing known"),
        (Some(Reservation::Noted(demand())), "noted"),
        (Some(Reservation::Paid), "paid"),
        (Some(Reservation::Reserved(held(demand()))), "reserved"),
        (Some(Reservation::Failed), "failed"),
        (Some(Reservation::Released), "released"),
        (Some(Reservation::Cancelled), "cancelled"),
        (Some(Reservation::CancelledPaid), "cancelled_paid"),
    ]
}

/// What a sequence of inputs made inventory do.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Effects {
    reserved: u32,
    released: u32,
    failed: u32,
}

/// Runs `inputs` through the table, with a stock that can or cannot serve the order.
fn run(inputs: &[Input], stocked: bool) -> Effects {
    let (mut reservation, mut effects) = (None, Effects::default());
    for input in inputs {
        reservation = match on(reservation.as_ref(), input) {
            Decision::Note(demand) => Some(Reservation::Noted(demand)),
            Decision::AwaitOrder => Some(Reservation::Paid),
            Decision::Reserve(demand) if stocked => {
                effects.reserved += 1;
                Some(Reservation::Reserved(held(demand)))
            }
            Decision::Reserve(_) | Decision::Refuse => {
                effects.failed += 1;
                Some(Reservation::Failed)
            }
            Decision::Release(_) => {
                effects.released += 1;
                Some(Reservation::Released)
            }
            Decision::Block => Some(Reservation::Cancelled),
            Decision::BlockPaid => Some(Reservation::CancelledPaid),
            Decision::Keep(_) => reservation,
        };
    }
    effects
}

/// Every sequence of one to six inputs.
fn sequences() -> impl Iterator<Item = Vec<Input>> {
    (1..=6_u32).flat_map(|length| {
        (0..3_usize.pow(length))
            .map(move |code| (0..length).map(|digit| inputs()[code / 3_usize.pow(digit) % 3].0.clone()).collect())
    })
}

#[test]
fn the_table_in_the_docs_is_the_code() {
    let mut table = String::from("| state |");
    for (_, heading) in inputs() {
        write!(table, " {heading} |").unwrap();
    }
    writeln!(table, "\n|---|{}", "---|".repeat(inputs().len())).unwrap();
    for (reservation, name) in states() {
        write!(table, "| {name} |").unwrap();
        for (input, _) in inputs() {
            write!(table, " {} |", on(reservation.as_ref(), &input)).unwrap();
        }
        table.push('\n');
    }
    let page = include_str!("../../../../../docs/services/inventory.md");
    assert!(page.contains(&table), "docs/services/inventory.md must contain this table:\n{table}");
}

#[test]
fn stock_is_reserved_and_released_at_most_once_and_never_kept_for_a_cancelled_order() {
    for inputs in sequences() {
        let Effects { reserved, released, .. } = run(&inputs, true);
        assert!(reserved <= 1 && released <= reserved, "{inputs:?}");
        let cancelled = inputs.contains(&Input::OrderCancelled);
        assert!(!cancelled || released == reserved, "{inputs:?} keeps stock for a cancelled order");
    }
}

#[test]
fn a_payment_of_a_known_order_is_answered_exactly_once() {
    for stocked in [true, false] {
        for inputs in sequences() {
            let Effects { reserved, failed, .. } = run(&inputs, stocked);
            let known = inputs.iter().any(|input| matches!(input, Input::OrderCreated(_)));
            let paid = inputs.contains(&Input::PaymentProcessed);
            assert!(reserved + failed <= u32::from(paid), "{inputs:?} is answered without a payment or twice");
            assert!(!(known && paid) || reserved + failed == 1, "{inputs:?} is not answered");
        }
    }
}

#[test]
fn the_same_facts_hold_the_same_stock_in_whatever_order_they_arrive() {
    let mut outcomes: BTreeMap<[bool; 3], u32> = BTreeMap::new();
    for inputs in sequences() {
        let heard = [
            inputs.iter().any(|input| matches!(input, Input::OrderCreated(_))),
            inputs.contains(&Input::PaymentProcessed),
            inputs.contains(&Input::OrderCancelled),
        ];
        let Effects { reserved, released, .. } = run(&inputs, true);
        let held = reserved - released;
        assert_eq!(*outcomes.entry(heard).or_insert(held), held, "{inputs:?}");
    }
    // The seven non-empty sets of three facts: only a paid order that was not cancelled holds stock.
    assert_eq!(outcomes.len(), 7);
    assert!(outcomes.into_iter().all(|(heard, held)| held == u32::from(heard == [true, true, false])));
}
