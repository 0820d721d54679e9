//! Money is conserved: nobody pays twice, nobody pays for nothing, and the books agree with what was said.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::stream::Facts;
use super::{Asked, Check, Evidence, LedgerEntry, Record};

const CHARGED: &str = "payments.payment_processed.v1";
const REFUNDED: &str = "payments.refund_issued.v1";

pub(super) fn check(evidence: &Evidence, record: &Record, facts: &Facts<'_>) -> Check {
    let mut check = Check::new("money");
    for (&customer_id, &paid_in) in &record.deposits {
        account(&mut check, evidence, record, facts, customer_id, paid_in);
    }
    for entry in &evidence.ledger {
        check.ensure(record.deposits.contains_key(&entry.customer_id), || {
            format!("customer {} has an account that nobody opened", entry.customer_id)
        });
    }
    for (&order_id, asked) in &record.orders {
        order(&mut check, evidence, facts, order_id, asked);
    }
    for entry in evidence.ledger.iter().filter(|entry| matches!(&*entry.kind, "charged" | "refunded")) {
        check.ensure(entry.order_id.is_some_and(|order_id| record.orders.contains_key(&order_id)), || {
            format!("entry {} of customer {} is about no accepted order", entry.version, entry.customer_id)
        });
    }
    check
}

/// What was paid in is what is left and what the orders kept.
fn account(
    check: &mut Check,
    evidence: &Evidence,
    record: &Record,
    facts: &Facts<'_>,
    customer_id: Uuid,
    paid_in: i64,
) {
    check.item();
    let entries: Vec<&LedgerEntry> = evidence.ledger.iter().filter(|entry| entry.customer_id == customer_id).collect();
    let versions: Vec<i64> = entries.iter().map(|entry| entry.version).collect();
    check.ensure((1..).zip(&versions).all(|(expected, version)| expected == *version), || {
        format!("the entries of customer {customer_id} are numbered {versions:?}")
    });
    let sum = |kind: &str| entries.iter().filter(|entry| entry.kind == kind).map(|entry| entry.minor).sum::<i64>();
    let deposited = sum("deposited");
    check.ensure(deposited == paid_in, || {
        format!("customer {customer_id} paid in {paid_in} and {deposited} were booked")
    });
    let balance = deposited - sum("charged") + sum("refunded");
    let shown = evidence.shown.balances.get(&customer_id).copied();
    check.ensure(shown == Some(balance) && balance >= 0, || {
        format!("the entries of customer {customer_id} add up to {balance} and the service shows {shown:?}")
    });
    let own: Vec<Uuid> =
        record.orders.iter().filter(|(_, asked)| asked.customer_id == customer_id).map(|(id, _)| *id).collect();
    let said = |kind: &str| {
        let amounts = own.iter().flat_map(|id| facts.of_kind(*id, kind));
        amounts.filter_map(|fact| fact.json()["amount"]["minor"].as_i64()).sum::<i64>()
    };
    let kept = said(CHARGED) - said(REFUNDED);
    check.ensure(paid_in == balance + kept, || {
        format!("customer {customer_id} paid in {paid_in}, has {balance} left, and by the facts {kept} were kept")
    });
}

/// At most one charge and one refund; a refund undoes its charge; how the order ended decides which there are.
fn order(check: &mut Check, evidence: &Evidence, facts: &Facts<'_>, order_id: Uuid, asked: &Asked) {
    check.item();
    let booked = |kind: &str| -> Vec<&LedgerEntry> {
        let of_order = evidence.ledger.iter().filter(|entry| entry.order_id == Some(order_id));
        of_order.filter(|entry| entry.kind == kind).collect()
    };
    let (charges, refunds) = (booked("charged"), booked("refunded"));
    let counts = (charges.len(), refunds.len());
    check.ensure(matches!(counts, (0, 0) | (1, 0) | (1, 1)), || {
        format!("order {order_id} has {} charges and {} refunds", counts.0, counts.1)
    });
    for refund in &refunds {
        let undone = charges.iter().any(|charge| {
            charge.payment_id == refund.payment_id
                && charge.minor == refund.minor
                && charge.customer_id == refund.customer_id
        });
        check.ensure(undone, || format!("the refund of order {order_id} undoes no charge of it"));
    }
    for charge in &charges {
        check.ensure(charge.minor == asked.total && charge.customer_id == asked.customer_id, || {
            format!("order {order_id} costs customer {} {}, charged was {charge:?}", asked.customer_id, asked.total)
        });
    }
    let said = (facts.of_kind(order_id, CHARGED).len(), facts.of_kind(order_id, REFUNDED).len());
    check.ensure(said == counts, || format!("order {order_id}: booked {counts:?}, said {said:?} (charges, refunds)"));
    let state = evidence.payments.get(&order_id).map_or("nothing", |payment| payment.state.as_str());
    let by_state = BTreeMap::from([("charged", (1, 0)), ("refunded", (1, 1))]).get(state).copied().unwrap_or((0, 0));
    check.ensure(by_state == counts, || format!("order {order_id} is {state} at payments, booked is {counts:?}"));
    let status = evidence.orders.get(&order_id).map_or("unknown", |order| order.status.as_str());
    let allowed = match status {
        "confirmed" => counts == (1, 0),
        "cancelled" => matches!(counts, (0, 0) | (1, 1)),
        _ => false,
    };
    check
        .ensure(allowed, || format!("order {order_id} is {status} with {} charges and {} refunds", counts.0, counts.1));
}
