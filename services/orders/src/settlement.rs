//! The one way in which an order ends: lock, decide, store, say so.

use anyhow::anyhow;
use events::{OrderCancelled, OrderConfirmed};
use mesh::{Failure, Handled, Tx};
use uuid::Uuid;

use crate::domain::{Decision, Input, Kept, Order, Status, on};
use crate::store;

/// How the undoing of an order is counted.
pub(crate) const COMPENSATION: &str = "cancel";

/// What came of an input.
#[derive(Debug)]
pub(crate) enum Settlement {
    /// The order is confirmed now.
    Confirmed,
    /// The order is cancelled now.
    Cancelled(Order),
    /// The order had ended before and stays as it is.
    Kept(Order, Kept),
    /// There is no such order.
    Unknown(Uuid),
}

/// Lets `input` act on an order. What is decided is in [`on`].
pub(crate) async fn settle(tx: &mut Tx, order_id: Uuid, input: Input) -> anyhow::Result<Settlement> {
    let order = store::lock(tx, order_id).await?;
    let decision = on(order.as_ref().map(|order| &order.status), input);
    match (order, decision) {
        (Some(order), Decision::Confirm) => {
            store::settle(tx, order, Status::Confirmed).await?;
            tx.publish(&OrderConfirmed { order_id })?;
            Ok(Settlement::Confirmed)
        }
        (Some(order), Decision::Cancel(reason)) => {
            let order = store::settle(tx, order, Status::Cancelled(reason.clone())).await?;
            tx.publish(&OrderCancelled { order_id, reason })?;
            Ok(Settlement::Cancelled(order))
        }
        (Some(order), Decision::Keep(kept)) => Ok(Settlement::Kept(order, kept)),
        (None, _) | (Some(_), Decision::Unknown) => Ok(Settlement::Unknown(order_id)),
    }
}

/// Lets a fact act on an order.
pub(crate) async fn hear(tx: &mut Tx, order_id: Uuid, input: Input) -> Result<Handled, Failure> {
    match settle(tx, order_id, input).await? {
        Settlement::Confirmed => Ok(Handled::Effect),
        Settlement::Cancelled(_) => Ok(Handled::Compensated(COMPENSATION)),
        Settlement::Kept(_, kept) => Ok(Handled::NoEffect(kept.as_str())),
        // Perhaps a database that was set back is being caught up; if not, the attempts run out.
        Settlement::Unknown(order_id) => Err(Failure::Retry(anyhow!("there is no order {order_id}"))),
    }
}
