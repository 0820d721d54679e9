//! The statements on the tables of this service. Functions take a connection, so that a transaction goes through them.
//!
//! Locks are taken in one order everywhere: the reservation first, then the stock of its lines by SKU.

pub mod reservations;
pub mod stock;

/// A statement that must have changed `expected` rows did.
fn changed(rows: u64, expected: usize) -> sqlx::Result<()> {
    if rows == expected as u64 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}
