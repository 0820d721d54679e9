//! When payments did not charge, the order is cancelled.

use events::PaymentDeclined;
use mesh::{Failure, Handled, Received, Subscriber, Tx};

use crate::domain::Input;
use crate::settlement::hear;

/// The reaction to [`PaymentDeclined`].
#[derive(Debug)]
pub struct CancelDeclinedOrder;

impl Subscriber for CancelDeclinedOrder {
    type Event = PaymentDeclined;
    const NAME: &'static str = "cancel-declined-order";

    async fn handle(&self, tx: &mut Tx, received: Received<PaymentDeclined>) -> Result<Handled, Failure> {
        hear(tx, received.event.order_id, Input::PaymentDeclined).await
    }
}
