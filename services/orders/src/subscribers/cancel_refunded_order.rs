//! When payments gave the money back because inventory could not reserve, the order is cancelled.

use events::RefundIssued;
use mesh::{Failure, Handled, Received, Subscriber, Tx};

use crate::domain::Input;
use crate::settlement::hear;

/// The reaction to [`RefundIssued`].
#[derive(Debug)]
pub struct CancelRefundedOrder;

impl Subscriber for CancelRefundedOrder {
    type Event = RefundIssued;
    const NAME: &'static str = "cancel-refunded-order";

    async fn handle(&self, tx: &mut Tx, received: Received<RefundIssued>) -> Result<Handled, Failure> {
        hear(tx, received.event.order_id, Input::RefundIssued).await
    }
}
