//! Stock is conserved: what is set aside is exactly what confirmed orders were promised.

use std::collections::BTreeMap;

use serde_json::Value;
use uuid::Uuid;

use super::stream::{Facts, Stored};
use super::{Asked, Check, Evidence, Record};

const RESERVED: &str = "inventory.inventory_reserved.v1";
const RELEASED: &str = "inventory.inventory_released.v1";

pub(super) fn check(evidence: &Evidence, record: &Record, facts: &Facts<'_>) -> Check {
    let mut check = Check::new("stock");
    let said = set_aside(facts);
    for (sku, &on_hand) in &record.stocked {
        check.item();
        let Some(row) = evidence.stock.get(sku) else {
            check.violated(format!("there is no stock of {sku}"));
            continue;
        };
        check.ensure(row.on_hand == on_hand, || format!("{on_hand} of {sku} were put in, {} are there", row.on_hand));
        check.ensure((0..=row.on_hand).contains(&row.reserved), || {
            format!("{} of {} pieces of {sku} are reserved", row.reserved, row.on_hand)
        });
        let live = evidence.reservations.values().filter(|reservation| reservation.state == "reserved");
        let held: i64 = live.filter_map(|reservation| reservation.pieces.get(sku)).sum();
        let by_facts = said.get(sku.as_str()).copied().unwrap_or_default();
        check.ensure(row.reserved == held && held == by_facts, || {
            format!("{} of {sku} are reserved; reservations hold {held}, facts say {by_facts}", row.reserved)
        });
        let shown = evidence.shown.stock.get(sku).copied();
        let expected = (row.on_hand, row.reserved, row.on_hand - row.reserved);
        check.ensure(shown == Some(expected), || format!("{sku} is shown as {shown:?}, is {expected:?}"));
    }
    for (&order_id, asked) in &record.orders {
        order(&mut check, evidence, facts, order_id, asked);
    }
    check
}

/// Pieces per SKU that were reserved and not released, by what was said.
fn set_aside(facts: &Facts<'_>) -> BTreeMap<String, i64> {
    let mut pieces = BTreeMap::new();
    for fact in &facts.first {
        let sign = match fact.kind() {
            RESERVED => 1,
            RELEASED => -1,
            _ => continue,
        };
        for (sku, quantity) in lines(fact) {
            *pieces.entry(sku).or_default() += sign * quantity;
        }
    }
    pieces
}

fn lines(fact: &Stored) -> BTreeMap<String, i64> {
    pieces(&fact.json()["lines"])
}

/// Pieces per SKU of an array of lines.
pub(super) fn pieces(lines: &Value) -> BTreeMap<String, i64> {
    let lines = lines.as_array().map(Vec::as_slice).unwrap_or_default();
    lines
        .iter()
        .map(|line| {
            (line["sku"].as_str().unwrap_or_default().to_owned(), line["quantity"].as_i64().unwrap_or_default())
        })
        .collect()
}

/// At most one reservation and one release, of exactly what was ordered; how the order ended decides which there are.
fn order(check: &mut Check, evidence: &Evidence, facts: &Facts<'_>, order_id: Uuid, asked: &Asked) {
    check.item();
    let (reserved, released) = (facts.of_kind(order_id, RESERVED), facts.of_kind(order_id, RELEASED));
    let counts = (reserved.len(), released.len());
    check.ensure(matches!(counts, (0, 0) | (1, 0) | (1, 1)), || {
        format!("order {order_id} was reserved {} times and released {} times", counts.0, counts.1)
    });
    for fact in reserved.iter().chain(&released) {
        check.ensure(lines(fact) == asked.pieces, || {
            format!("order {order_id} asked for {:?}, {} says {:?}", asked.pieces, fact.kind(), lines(fact))
        });
    }
    let names = |facts: &[&Stored]| facts.first().map(|fact| fact.json()["reservation_id"].clone());
    check.ensure(released.is_empty() || names(&reserved) == names(&released), || {
        format!("what was released for order {order_id} is not what was reserved")
    });
    let state = evidence.reservations.get(&order_id).map_or("nothing", |reservation| reservation.state.as_str());
    let by_state = match state {
        "reserved" => (1, 0),
        "released" => (1, 1),
        _ => (0, 0),
    };
    check.ensure(by_state == counts, || format!("order {order_id} is {state} at inventory, said was {counts:?}"));
    let status = evidence.orders.get(&order_id).map_or("unknown", |order| order.status.as_str());
    let allowed = match status {
        "confirmed" => counts == (1, 0),
        "cancelled" => matches!(counts, (0, 0) | (1, 1)),
        _ => false,
    };
    check.ensure(allowed, || {
        format!("order {order_id} is {status}, reserved {} times, released {} times", counts.0, counts.1)
    });
}
