//! When a payment is refunded, the points for it are taken back, or never count.

use events::RefundIssued;
use mesh::{Failure, Handled, Received, Subscriber, Tx};

/// The reaction to [`RefundIssued`].
#[derive(Debug)]
pub struct TakeBackPoints;

impl Subscriber for TakeBackPoints {
    type Event = RefundIssued;
    const NAME: &'static str = "take-back-points";

    async fn handle(&self, tx: &mut Tx, received: Received<RefundIssued>) -> Result<Handled, Failure> {
        sqlx::query(
            "insert into award (order_id, taken_back) values ($1, true)
             on conflict (order_id) do update set taken_back = true",
        )
        .bind(received.event.order_id)
        .execute(&mut **tx)
        .await?;
        Ok(Handled::Compensated("take_back"))
    }
}
