//! What time makes due: flows that did not end in time.

use anyhow::anyhow;
use mesh::telemetry::metrics;
use mesh::{Cause, Failure, Progress, Timer, Tx, Verdict};
use uuid::Uuid;

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
        let verdict = match settle(tx, order_id, Input::Deadline).await? {
            Settlement::Cancelled(_) => Verdict::Compensated(COMPENSATION),
            Settlement::Kept(order, kept) => {
                store::close_flow(tx, &order).await?;
                Verdict::NoEffect(kept.as_str())
            }
            Settlement::Confirmed | Settlement::Unknown(_) => {
                return Err(Failure::Retry(anyhow!("the deadline of order {order_id} had an impossible outcome")));
            }
        };
        count(order_id, &verdict);
        Ok(Progress::More)
    }
}

/// A deadline that came too late is counted by itself, like a fact that changed nothing.
fn count(order_id: Uuid, verdict: &Verdict) {
    metrics::verdict(verdict.label(), OrderDeadline::NAME);
    if let Verdict::Compensated(action) = verdict {
        metrics::compensated(action);
    }
    tracing::info!(flow = %order_id, verdict = verdict.label(), detail = verdict.detail(), "the deadline has passed");
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
