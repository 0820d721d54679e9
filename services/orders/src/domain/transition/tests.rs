use std::fmt::Write as _;

use events::CancelReason;

use super::{Decision, Input, Kept, on};
use crate::domain::Status;

const INPUTS: [(Input, &str); 5] = [
    (Input::InventoryReserved, "`InventoryReserved`"),
    (Input::PaymentDeclined, "`PaymentDeclined`"),
    (Input::RefundIssued, "`RefundIssued`"),
    (Input::CustomerCancel, "customer cancels"),
    (Input::Deadline, "deadline"),
];

fn states() -> [(Option<Status>, &'static str); 4] {
    [
        (None, "not known"),
        (Some(Status::Pending), "pending"),
        (Some(Status::Confirmed), "confirmed"),
        (Some(Status::Cancelled(CancelReason::Customer)), "cancelled"),
    ]
}

/// The state in which a decision leaves an order.
fn after(status: Option<Status>, decision: &Decision) -> Option<Status> {
    match decision {
        Decision::Confirm => Some(Status::Confirmed),
        Decision::Cancel(reason) => Some(Status::Cancelled(reason.clone())),
        Decision::Keep(_) | Decision::Unknown => status,
    }
}

#[test]
fn the_table_in_the_docs_is_the_code() {
    let mut table = String::from("| state |");
    for (_, heading) in INPUTS {
        write!(table, " {heading} |").unwrap();
    }
    writeln!(table, "\n|---|{}", "---|".repeat(INPUTS.len())).unwrap();
    for (status, name) in states() {
        write!(table, "| {name} |").unwrap();
        for (input, _) in INPUTS {
            write!(table, " {} |", on(status.as_ref(), input)).unwrap();
        }
        table.push('\n');
    }
    let page = include_str!("../../../../../docs/services/orders.md");
    assert!(page.contains(&table), "docs/services/orders.md must contain this table:\n{table}");
}

#[test]
fn the_reason_of_a_cancelled_order_makes_no_difference() {
    for reason in ["payment_declined", "out_of_stock", "customer", "deadline", "a_reason_from_the_future"] {
        for (input, _) in INPUTS {
            let cancelled = Status::Cancelled(CancelReason::from(reason));
            assert_eq!(on(Some(&cancelled), input), Decision::Keep(Kept::AlreadyCancelled), "{reason}, {input:?}");
        }
    }
}

#[test]
fn an_end_is_final_and_every_input_ends_a_pending_order() {
    for (first, _) in INPUTS {
        let end = after(Some(Status::Pending), &on(Some(&Status::Pending), first));
        assert_ne!(end, Some(Status::Pending), "{first:?}");
        for (second, _) in INPUTS {
            let decision = on(end.as_ref(), second);
            assert!(matches!(decision, Decision::Keep(_)), "{first:?} then {second:?}: {decision}");
        }
    }
}
