//! When an order is paid, its customer gets points.

use events::PaymentProcessed;
use mesh::{Failure, Handled, Received, Subscriber, Tx};

/// The reaction to [`PaymentProcessed`].
#[derive(Debug)]
pub struct AwardPoints;

impl Subscriber for AwardPoints {
    type Event = PaymentProcessed;
    const NAME: &'static str = "award-points";

    async fn handle(&self, tx: &mut Tx, received: Received<PaymentProcessed>) -> Result<Handled, Failure> {
        let PaymentProcessed { order_id, customer_id, amount, .. } = received.event;
        let points = amount.minor / 10_i64.pow(u32::from(amount.scale));
        sqlx::query(
            "insert into award (order_id, customer_id, points) values ($1, $2, $3)
             on conflict (order_id) do update set customer_id = excluded.customer_id, points = excluded.points",
        )
        .bind(order_id)
        .bind(customer_id)
        .bind(points)
        .execute(&mut **tx)
        .await?;
        Ok(Handled::Effect)
    }
}
