//! The one way in which stock moves for an order: lock, decide, move, remember it, say so.

use events::{FailureReason, InventoryFailed, InventoryReleased, InventoryReserved, Shortage};
use mesh::{Failure, Handled, Tx};
use uuid::Uuid;

use crate::domain::{Decision, Demand, Held, Input, Refusal, Reservation, allocate, on};
use crate::store::{reservations, stock};

/// Lets a fact act on the reservation of an order. What is decided is in [`on`].
pub(crate) async fn hear(tx: &mut Tx, order_id: Uuid, input: Input) -> Result<Handled, Failure> {
    let now = reservations::lock(tx, order_id).await?;
    let order = Order { order_id, now: now.as_ref() };
    match on(order.now, &input) {
        Decision::Note(demand) => order.becomes(tx, &Reservation::Noted(demand)).await?,
        Decision::AwaitOrder => order.becomes(tx, &Reservation::Paid).await?,
        Decision::Reserve(demand) => reserve_or_fail(tx, order, demand).await?,
        Decision::Refuse => fail(tx, order, FailureReason::OrderCancelled, Vec::new()).await?,
        Decision::Release(held) => return release(tx, order, held).await,
        Decision::Block => order.becomes(tx, &Reservation::Cancelled).await?,
        Decision::BlockPaid => order.becomes(tx, &Reservation::CancelledPaid).await?,
        Decision::Keep(kept) => return Ok(Handled::NoEffect(kept.as_str())),
    }
    Ok(Handled::Effect)
}

/// An order under the lock of this transaction.
#[derive(Clone, Copy)]
struct Order<'a> {
    order_id: Uuid,
    now: Option<&'a Reservation>,
}

impl Order<'_> {
    async fn becomes(self, tx: &mut Tx, next: &Reservation) -> sqlx::Result<()> {
        match self.now {
            None => reservations::insert(tx, self.order_id, next).await,
            Some(now) => reservations::advance(tx, self.order_id, now, next).await,
        }
    }
}

async fn reserve_or_fail(tx: &mut Tx, order: Order<'_>, demand: Demand) -> Result<(), Failure> {
    let kept = stock::lock_demanded(tx, &demand).await?;
    if let Err(Refusal { reason, shortages }) = allocate(&demand, &kept) {
        return fail(tx, order, reason, shortages).await;
    }
    stock::reserve(tx, &demand).await?;
    let (order_id, reservation_id) = (order.order_id, tx.derive_id("reservation"));
    tx.publish(&InventoryReserved { order_id, reservation_id, lines: demand.to_fact() })?;
    order.becomes(tx, &Reservation::Reserved(Held { reservation_id, demand })).await?;
    Ok(())
}

async fn fail(tx: &mut Tx, order: Order<'_>, reason: FailureReason, shortages: Vec<Shortage>) -> Result<(), Failure> {
    order.becomes(tx, &Reservation::Failed).await?;
    tx.publish(&InventoryFailed { order_id: order.order_id, reason, shortages })?;
    Ok(())
}

async fn release(tx: &mut Tx, order: Order<'_>, held: Held) -> Result<Handled, Failure> {
    let Held { reservation_id, demand } = held;
    stock::lock_demanded(tx, &demand).await?;
    stock::release(tx, &demand).await?;
    order.becomes(tx, &Reservation::Released).await?;
    tx.publish(&InventoryReleased { order_id: order.order_id, reservation_id, lines: demand.to_fact() })?;
    Ok(Handled::Compensated("release"))
}
