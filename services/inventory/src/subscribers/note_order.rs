//! When an order is created, its lines are remembered; when it is known to be paid already, they are reserved.

use events::OrderCreated;
use mesh::{Failure, Handled, OrReject, Received, Subscriber, Tx};

use crate::domain::{Demand, Input};
use crate::settlement::hear;

/// The reaction to [`OrderCreated`].
#[derive(Debug)]
pub struct NoteOrder;

impl Subscriber for NoteOrder {
    type Event = OrderCreated;
    const NAME: &'static str = "note-order";

    async fn handle(&self, tx: &mut Tx, received: Received<OrderCreated>) -> Result<Handled, Failure> {
        let OrderCreated { order_id, lines, .. } = received.event;
        let demand = Demand::of(&lines).or_reject()?;
        hear(tx, order_id, Input::OrderCreated(demand)).await
    }
}
