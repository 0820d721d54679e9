//! When inventory has set every line aside, the order is confirmed.

use events::InventoryReserved;
use mesh::{Failure, Handled, Received, Subscriber, Tx};

use crate::domain::Input;
use crate::settlement::hear;

/// The reaction to [`InventoryReserved`].
#[derive(Debug)]
pub struct ConfirmOrder;

impl Subscriber for ConfirmOrder {
    type Event = InventoryReserved;
    const NAME: &'static str = "confirm-order";

    async fn handle(&self, tx: &mut Tx, received: Received<InventoryReserved>) -> Result<Handled, Failure> {
        hear(tx, received.event.order_id, Input::InventoryReserved).await
    }
}
