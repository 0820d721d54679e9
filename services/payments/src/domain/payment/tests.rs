use std::fmt::Write as _;

use events::{Currency, Money};
use uuid::Uuid;

use super::{Bill, Charge, Decision, Input, NotPositive, Payment, on};

fn inputs() -> [(Input, &'static str); 3] {
    [
        (Input::OrderCreated(charge().bill), "`OrderCreated`"),
        (Input::InventoryFailed, "`InventoryFailed`"),
        (Input::OrderCancelled, "`OrderCancelled`"),
    ]
}

fn euros(minor: i64) -> Money {
    Money::new(minor, Currency::parse("EUR").unwrap()).unwrap()
}

fn charge() -> Charge {
    Charge { payment_id: Uuid::from_u128(1), bill: Bill::new(Uuid::from_u128(2), euros(1999)).unwrap() }
}

fn states() -> [(Option<Payment>, &'static str); 5] {
    [
        (None, "nothing known"),
        (Some(Payment::Charged(charge())), "charged"),
        (Some(Payment::Declined), "declined"),
        (Some(Payment::Refunded(charge())), "refunded"),
        (Some(Payment::Blocked), "blocked"),
    ]
}

/// The state in which a decision leaves a payment, and what it moves: -1 for a charge, +1 for a refund.
fn after(payment: Option<Payment>, decision: &Decision, funds: bool) -> (Option<Payment>, i32) {
    match decision {
        Decision::Charge(_) if funds => (Some(Payment::Charged(charge())), -1),
        Decision::Charge(_) | Decision::Decline(..) => (Some(Payment::Declined), 0),
        Decision::Refund(undone, _) => (Some(Payment::Refunded(*undone)), 1),
        Decision::Block => (Some(Payment::Blocked), 0),
        Decision::Keep(_) => (payment, 0),
    }
}

#[test]
fn the_table_in_the_docs_is_the_code() {
    let mut table = String::from("| state |");
    for (_, heading) in inputs() {
        write!(table, " {heading} |").unwrap();
    }
    writeln!(table, "\n|---|{}", "---|".repeat(inputs().len())).unwrap();
    for (payment, name) in states() {
        write!(table, "| {name} |").unwrap();
        for (input, _) in inputs() {
            write!(table, " {} |", on(payment.as_ref(), input)).unwrap();
        }
        table.push('\n');
    }
    let page = include_str!("../../../../../docs/services/payments.md");
    assert!(page.contains(&table), "docs/services/payments.md must contain this table:\n{table}");
}

/// Every sequence of up to six inputs, with and without funds: the account is never credited before it is debited, never
/// debited or credited twice, and ends level whenever something was undone.
#[test]
fn whatever_arrives_in_whatever_order_a_customer_is_charged_and_refunded_at_most_once() {
    for funds in [true, false] {
        for length in 1..=6_u32 {
            for code in 0..3_usize.pow(length) {
                let sequence: Vec<Input> = (0..length).map(|digit| inputs()[code / 3_usize.pow(digit) % 3].0).collect();
                let (mut payment, mut moves) = (None, Vec::new());
                for input in &sequence {
                    let (next, moved) = after(payment, &on(payment.as_ref(), *input), funds);
                    payment = next;
                    moves.extend((moved != 0).then_some(moved));
                }
                assert!([&[][..], &[-1], &[-1, 1]].contains(&&moves[..]), "{sequence:?} moved {moves:?}");
                let undone = sequence.iter().any(|input| !matches!(input, Input::OrderCreated(_)));
                assert!(!undone || moves.iter().sum::<i32>() == 0, "{sequence:?} moved {moves:?}");
            }
        }
    }
}

#[test]
fn only_a_positive_amount_is_a_charge() {
    for minor in [0, -1] {
        assert_eq!(Bill::new(Uuid::max(), euros(minor)), Err(NotPositive(minor)));
    }
}
