//! `POST /orders`.

use std::time::Duration;

use events::OrderCreated;
use mesh::Tx;
use mesh::http::{FieldError, Operation, Problem, Reply};

use super::view::OrderView;
use crate::domain::{Draft, Placement, Violation};
use crate::store;

/// Places an order and tells the others about it.
#[derive(Debug)]
pub struct PlaceOrder {
    /// How long the order may stay pending.
    pub flow_deadline: Duration,
}

impl Operation for PlaceOrder {
    const NAME: &'static str = "place-order";
    type Path = ();
    type Body = Draft;

    async fn execute(&self, tx: &mut Tx, (): (), draft: Draft) -> Result<Reply, Problem> {
        let placement = Placement::check(&draft).map_err(refused)?;
        let order_id = tx.derive_id("order");
        let Placement { customer_id, total, ref lines } = placement;
        let created = OrderCreated { order_id, customer_id, total, lines: lines.clone() };
        let created_event_id = tx.publish(&created)?;
        let order = store::insert(tx, order_id, placement, created_event_id, self.flow_deadline).await?;
        Ok(Reply::created(format!("/orders/{order_id}"), &OrderView::from(&order)))
    }
}

fn refused(violations: Vec<Violation>) -> Problem {
    Problem::invalid(violations.into_iter().map(|wrong| FieldError::new(wrong.field, wrong.detail)).collect())
}
