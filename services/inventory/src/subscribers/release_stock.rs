//! When an order is cancelled, what was set aside for it is free again, or is never set aside.

use events::OrderCancelled;
use mesh::{Failure, Handled, Received, Subscriber, Tx};

use crate::domain::Input;
use crate::settlement::hear;

/// The reaction to [`OrderCancelled`].
#[derive(Debug)]
pub struct ReleaseStock;

impl Subscriber for ReleaseStock {
    type Event = OrderCancelled;
    const NAME: &'static str = "release-stock";

    async fn handle(&self, tx: &mut Tx, received: Received<OrderCancelled>) -> Result<Handled, Failure> {
        hear(tx, received.event.order_id, Input::OrderCancelled).await
    }
}
