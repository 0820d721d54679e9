//! When inventory could not reserve, the customer gets the money back.

use events::InventoryFailed;
use mesh::{Failure, Handled, Received, Subscriber, Tx};

use crate::domain::Input;
use crate::settlement::hear;

/// The reaction to [`InventoryFailed`].
#[derive(Debug)]
pub struct RefundFailedOrder;

impl Subscriber for RefundFailedOrder {
    type Event = InventoryFailed;
    const NAME: &'static str = "refund-failed-order";

    async fn handle(&self, tx: &mut Tx, received: Received<InventoryFailed>) -> Result<Handled, Failure> {
        hear(tx, received.event.order_id, Input::InventoryFailed).await
    }
}
