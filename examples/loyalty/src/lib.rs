//! Gives customers points for what they pay, and takes them back when it is refunded.
//!
//! | hears | does | says |
//! |---|---|---|
//! | `PaymentProcessed` | adds a point for each whole unit of the amount | nothing |
//! | `RefundIssued` | takes the points of the order back, or keeps them from being added | nothing |
//!
//! Both arrival orders of the two end in the same state.

use mesh::Service;

mod award_points;
mod take_back_points;

pub use award_points::AwardPoints;
pub use take_back_points::TakeBackPoints;

/// The service, ready to run.
#[must_use]
pub fn service() -> Service {
    Service::new("loyalty", env!("CARGO_PKG_VERSION"), sqlx::migrate!())
        .subscribe(AwardPoints)
        .subscribe(TakeBackPoints)
}

#[cfg(test)]
mod tests;
