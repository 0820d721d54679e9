//! The one way in which money moves for an order: lock, decide, write the entry, remember it, say so.

use anyhow::Context;
use events::{DeclineReason, PaymentDeclined, PaymentProcessed, RefundIssued, RefundReason};
use mesh::{Failure, Handled, Tx};
use uuid::Uuid;

use crate::domain::{Bill, Charge, Decision, Input, on};
use crate::{ledger, store};

/// Lets a fact act on the payment of an order. What is decided is in [`on`].
pub(crate) async fn hear(tx: &mut Tx, order_id: Uuid, input: Input) -> Result<Handled, Failure> {
    let payment = store::lock(tx, order_id).await?;
    match on(payment.as_ref(), input) {
        Decision::Charge(bill) => charge_or_decline(tx, order_id, bill).await,
        Decision::Decline(bill, reason) => {
            store::decline_blocked(tx, order_id).await?;
            say_declined(tx, order_id, bill, reason)
        }
        Decision::Refund(charge, reason) => refund(tx, order_id, charge, reason).await,
        Decision::Block => {
            store::insert_blocked(tx, order_id).await?;
            Ok(Handled::Effect)
        }
        Decision::Keep(kept) => Ok(Handled::NoEffect(kept.as_str())),
    }
}

async fn charge_or_decline(tx: &mut Tx, order_id: Uuid, bill: Bill) -> Result<Handled, Failure> {
    let account = ledger::load_for_update(tx, bill.customer_id).await?;
    let charge = Charge { payment_id: tx.derive_id("payment"), bill };
    let asked = account.as_ref().ok_or(DeclineReason::UnknownAccount);
    match asked.and_then(|account| account.charge(order_id, &charge)) {
        Ok(entry) => {
            ledger::append(tx, bill.customer_id, account, &entry).await?;
            store::insert_charged(tx, order_id, &charge).await?;
            let Charge { payment_id, bill: Bill { customer_id, amount } } = charge;
            tx.publish(&PaymentProcessed { order_id, payment_id, customer_id, amount })?;
            Ok(Handled::Effect)
        }
        Err(reason) => {
            store::insert_declined(tx, order_id).await?;
            say_declined(tx, order_id, bill, reason)
        }
    }
}

fn say_declined(tx: &mut Tx, order_id: Uuid, bill: Bill, reason: DeclineReason) -> Result<Handled, Failure> {
    let Bill { customer_id, amount } = bill;
    tx.publish(&PaymentDeclined { order_id, customer_id, amount, reason })?;
    Ok(Handled::Effect)
}

async fn refund(tx: &mut Tx, order_id: Uuid, charge: Charge, reason: RefundReason) -> Result<Handled, Failure> {
    let Charge { payment_id, bill: Bill { customer_id, amount } } = charge;
    let refund_id = tx.derive_id("refund");
    let account = ledger::load_for_update(tx, customer_id).await?;
    let account = account.with_context(|| format!("{customer_id} was charged and has no account"))?;
    ledger::append(tx, customer_id, Some(account), &charge.refund(order_id, refund_id)).await?;
    store::refund(tx, order_id, payment_id, refund_id).await?;
    tx.publish(&RefundIssued { order_id, payment_id, refund_id, amount, reason })?;
    Ok(Handled::Compensated("refund"))
}
