//! `POST /orders/{order_id}/cancel`.

use mesh::Tx;
use mesh::http::{NoBody, Operation, Problem, Reply};
use mesh::telemetry::metrics;
use uuid::Uuid;

use super::read::no_such_order;
use super::view::OrderView;
use crate::domain::{Input, Status};
use crate::settlement::{COMPENSATION, Settlement, settle};

/// Cancels a pending order because its customer asks for it. Asking again changes and says nothing more.
#[derive(Debug)]
pub struct CancelOrder;

impl Operation for CancelOrder {
    const NAME: &'static str = "cancel-order";
    type Path = Uuid;
    type Body = NoBody;

    async fn execute(&self, tx: &mut Tx, order_id: Uuid, _: NoBody) -> Result<Reply, Problem> {
        match settle(tx, order_id, Input::CustomerCancel).await? {
            Settlement::Cancelled(order) => {
                metrics::compensated(COMPENSATION);
                Ok(Reply::ok(&OrderView::from(&order)))
            }
            Settlement::Kept(order, _) if matches!(order.status, Status::Cancelled(_)) => {
                Ok(Reply::ok(&OrderView::from(&order)))
            }
            Settlement::Kept(..) | Settlement::Confirmed => {
                Err(Problem::conflict("the order is confirmed, it can no longer be cancelled"))
            }
            Settlement::Unknown(order_id) => Err(no_such_order(order_id)),
        }
    }
}
