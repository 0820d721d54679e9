//! When an order is cancelled, its customer gets the money back, or is never charged.

use events::OrderCancelled;
use mesh::{Failure, Handled, Received, Subscriber, Tx};

use crate::domain::Input;
use crate::settlement::hear;

/// The reaction to [`OrderCancelled`].
#[derive(Debug)]
pub struct RefundCancelledOrder;

impl Subscriber for RefundCancelledOrder {
    type Event = OrderCancelled;
    const NAME: &'static str = "refund-cancelled-order";

    async fn handle(&self, tx: &mut Tx, received: Received<OrderCancelled>) -> Result<Handled, Failure> {
        hear(tx, received.event.order_id, Input::OrderCancelled).await
    }
}
