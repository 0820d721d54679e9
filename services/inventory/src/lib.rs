//! Knows how much there is of each SKU and sets it aside for orders that are paid.
//!
//! | hears | does | says |
//! |---|---|---|
//! | `OrderCreated` and `PaymentProcessed`, in whichever order | when both are known, reserves every line or none | `InventoryReserved` or `InventoryFailed` |
//! | `OrderCancelled` | releases if it reserved; leaves a tombstone if it has not | `InventoryReleased` or nothing |
//!
//! Data flows one way: [`http`] or [`subscribers`], [`domain`] (which decides), [`store`], `tx.publish`, commit.
//! `docs/services/inventory.md` is the page for people.

use mesh::Service;

pub mod domain;
pub mod http;
mod settlement;
pub mod store;
pub mod subscribers;

/// The service, ready to run.
#[must_use]
pub fn service() -> Service {
    Service::new("inventory", env!("CARGO_PKG_VERSION"), sqlx::migrate!())
        .subscribe(subscribers::NoteOrder)
        .subscribe(subscribers::ReserveStock)
        .subscribe(subscribers::ReleaseStock)
        .routes(http::routes())
        .openapi(http::openapi())
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
