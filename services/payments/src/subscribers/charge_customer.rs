//! When an order is created, its customer is charged, or is not and hears why.

use events::OrderCreated;
use mesh::{Failure, Handled, OrReject, Received, Subscriber, Tx};

use crate::domain::{Bill, Input};
use crate::settlement::hear;

/// The reaction to [`OrderCreated`].
#[derive(Debug)]
pub struct ChargeCustomer;

impl Subscriber for ChargeCustomer {
    type Event = OrderCreated;
    const NAME: &'static str = "charge-customer";

    async fn handle(&self, tx: &mut Tx, received: Received<OrderCreated>) -> Result<Handled, Failure> {
        let OrderCreated { order_id, customer_id, total, .. } = received.event;
        let bill = Bill::new(customer_id, total).or_reject()?;
        hear(tx, order_id, Input::OrderCreated(bill)).await
    }
}
