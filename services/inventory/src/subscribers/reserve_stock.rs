//! When an order is paid, every line of it is set aside, or none; when its lines are not known yet, the payment is
//! remembered.

use events::PaymentProcessed;
use mesh::{Failure, Handled, Received, Subscriber, Tx};

use crate::domain::Input;
use crate::settlement::hear;

/// The reaction to [`PaymentProcessed`].
#[derive(Debug)]
pub struct ReserveStock;

impl Subscriber for ReserveStock {
    type Event = PaymentProcessed;
    const NAME: &'static str = "reserve-stock";

    async fn handle(&self, tx: &mut Tx, received: Received<PaymentProcessed>) -> Result<Handled, Failure> {
        hear(tx, received.event.order_id, Input::PaymentProcessed).await
    }
}
