//! Holds the customers' accounts and charges them for their orders.
//!
//! | hears | does | says |
//! |---|---|---|
//! | `OrderCreated` | debits the customer's account, or finds that it cannot | `PaymentProcessed` or `PaymentDeclined` |
//! | `InventoryFailed` | credits the account back, once, as a new entry | `RefundIssued` |
//! | `OrderCancelled` | refunds if it charged; leaves a tombstone if it has not | `RefundIssued` or nothing |
//!
//! Data flows one way: [`http`] or [`subscribers`], [`domain`] (which decides), [`ledger`] and [`store`], `tx.publish`,
//! commit. `docs/services/payments.md` is the page for people.

use mesh::Service;

pub mod domain;
pub mod http;
pub mod ledger;
mod settlement;
pub mod store;
pub mod subscribers;

/// The service, ready to run.
#[must_use]
pub fn service() -> Service {
    Service::new("payments", env!("CARGO_PKG_VERSION"), sqlx::migrate!())
        .subscribe(subscribers::ChargeCustomer)
        .subscribe(subscribers::RefundFailedOrder)
        .subscribe(subscribers::RefundCancelledOrder)
        .routes(http::routes())
        .openapi(http::openapi())
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
