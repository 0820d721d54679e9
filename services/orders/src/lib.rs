//! Takes orders and knows how each of them ends.
//!
//! | hears | does | says |
//! |---|---|---|
//! | `POST /orders` | inserts the order as `pending`, opens its flow | `OrderCreated` |
//! | `InventoryReserved` | `pending` to `confirmed` | `OrderConfirmed` |
//! | `PaymentDeclined`, `RefundIssued` | `pending` to `cancelled` | `OrderCancelled` |
//! | `POST /orders/{id}/cancel`, or the flow's deadline | `pending` to `cancelled` | `OrderCancelled` |
//!
//! Data flows one way: [`http`] or [`subscribers`], [`domain`] (which decides), [`store`], `tx.publish`, commit.
//! `docs/services/orders.md` is the page for people.

use std::time::Duration;

use mesh::Service;

pub mod deadline;
pub mod domain;
pub mod http;
pub mod settings;
mod settlement;
pub mod store;
pub mod subscribers;

pub use settings::Settings;

/// How often a replica looks for overdue flows: what a deadline is late by, at most.
const DEADLINE_PERIOD: Duration = Duration::from_secs(1);
/// How often a replica counts the flows that are past their deadline.
const WATCH_PERIOD: Duration = Duration::from_secs(5);

/// The service, ready to run.
#[must_use]
pub fn service(settings: Settings) -> Service {
    Service::new("orders", env!("CARGO_PKG_VERSION"), sqlx::migrate!())
        .subscribe(subscribers::ConfirmOrder)
        .subscribe(subscribers::CancelDeclinedOrder)
        .subscribe(subscribers::CancelRefundedOrder)
        .every(DEADLINE_PERIOD, deadline::OrderDeadline)
        .every(WATCH_PERIOD, deadline::WatchOverdueFlows)
        .routes(http::routes(settings))
        .openapi(http::openapi())
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
