//! Every accepted order exists once, has ended, and ended as everybody was told.

use uuid::Uuid;

use super::stream::Facts;
use super::{Asked, Check, Evidence, Record};

const CREATED: &str = "orders.order_created.v1";
const CONFIRMED: &str = "orders.order_confirmed.v1";
const CANCELLED: &str = "orders.order_cancelled.v1";
/// What moves money or stock.
const EFFECTS: [&str; 4] = [
    "payments.payment_processed.v1",
    "payments.refund_issued.v1",
    "inventory.inventory_reserved.v1",
    "inventory.inventory_released.v1",
];

pub(super) fn check(evidence: &Evidence, record: &Record, facts: &Facts<'_>) -> Check {
    let mut check = Check::new("orders");
    for (&order_id, asked) in &record.orders {
        order(&mut check, evidence, facts, order_id, asked);
    }
    for order_id in evidence.orders.keys().filter(|order_id| !record.orders.contains_key(order_id)) {
        check.violated(format!("nobody was told about order {order_id}"));
    }
    check
}

fn order(check: &mut Check, evidence: &Evidence, facts: &Facts<'_>, order_id: Uuid, asked: &Asked) {
    check.item();
    let Some(row) = evidence.orders.get(&order_id) else {
        check.violated(format!("order {order_id} was accepted and does not exist"));
        return;
    };
    check.ensure(matches!(&*row.status, "confirmed" | "cancelled"), || format!("order {order_id} is {}", row.status));
    check.ensure(row.stage == row.status, || {
        format!("the flow of order {order_id} is {}, the order is {}", row.stage, row.status)
    });
    check.ensure(row.total == asked.total, || format!("order {order_id} costs {}, not {}", row.total, asked.total));
    let shown = evidence.shown.orders.get(&order_id);
    check.ensure(shown == Some(&(row.status.clone(), row.cancel_reason.clone())), || {
        format!("order {order_id} is shown as {shown:?}, is {row:?}")
    });
    let created = facts.of_kind(order_id, CREATED).len();
    check.ensure(created == 1, || format!("order {order_id} was created {created} times"));
    last_word(check, facts, order_id, &row.status, row.cancel_reason.as_deref());
}

/// Exactly one terminal fact, the one that the order's row says; nothing moves after a confirmation.
fn last_word(check: &mut Check, facts: &Facts<'_>, order_id: Uuid, status: &str, reason: Option<&str>) {
    let of_order = facts.of_order(order_id);
    let ends: Vec<(usize, &str)> = of_order
        .iter()
        .enumerate()
        .filter(|(_, fact)| matches!(fact.kind(), CONFIRMED | CANCELLED))
        .map(|(place, fact)| (place, fact.kind()))
        .collect();
    let [(place, end)] = ends[..] else {
        check.violated(format!("order {order_id} has the terminal facts {ends:?}"));
        return;
    };
    let expected = if status == "confirmed" { CONFIRMED } else { CANCELLED };
    check.ensure(end == expected, || format!("order {order_id} is {status} and {end} was said"));
    let said = of_order[place].json()["reason"].as_str().map(str::to_owned);
    check.ensure(said.as_deref() == reason, || {
        format!("order {order_id} was cancelled for {reason:?} and {said:?} was said")
    });
    let late = of_order[place..].iter().find(|fact| EFFECTS.contains(&fact.kind()));
    if let (CONFIRMED, Some(late)) = (end, late) {
        check.violated(format!("{} came after order {order_id} was confirmed", late.kind()));
    }
}
