//! What time makes due: flows that did not end in time.

use mesh::telemetry::metrics;
use mesh::{Cause, Failure, Progress, Timer, Tx};

use crate::domain::Input;
use crate::settlement::{COMPENSATION, Settlement, settle};
use crate::store::{self, OverdueFlow};

/// Cancels the order of one overdue flow per tick.
#[derive(Debug)]
pub struct OrderDeadline;

impl Timer for OrderDeadline {
    const NAME: &'static str = "order-deadline";

    async fn tick(&self, tx: &mut Tx) -> Result<Progress, Failure> {
        let Some(OverdueFlow { order_id, created_event_id }) = store::lock_overdue(tx).await? else {
            return Ok(Progress::Idle);
        };
        // The root of the flow is the fact that created the order, and the flow is named by its order.
        tx.continue_flow(Cause { event_id: created_event_id, correlation_id: order_id, hops: 0 });
        match settle(tx, order_id, Input::Deadline).await? {
            Settlement::Cancelled(_) => {
                metrics::compensated(COMPENSATION);
                tracing::info!(flow = %order_id, "the flow did not end in time, its order is cancelled");
            }
            late => tracing::info!(flow = %order_id, ?late, "the flow ended while its deadline was looked at"),
        }
        Ok(Progress::More)
    }
}

/// Measures how many flows are past their deadline and still open.
#[derive(Debug)]
pub struct WatchOverdueFlows;

impl Timer for WatchOverdueFlows {
    const NAME: &'static str = "watch-overdue-flows";

    async fn tick(&self, tx: &mut Tx) -> Result<Progress, Failure> {
        let overdue = store::count_overdue(tx).await?;
        metrics::stuck_flows(u64::try_from(overdue).unwrap_or(0));
        Ok(Progress::Idle)
    }
}

#[cfg(test)]
mod tests;
