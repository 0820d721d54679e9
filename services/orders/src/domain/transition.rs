//! Every state of an order against everything that can happen to it. `docs/services/orders.md` holds the same table; a
//! test compares the two.

use std::fmt;

use events::CancelReason;

use super::Status;

/// What can move an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Inventory set every line aside.
    InventoryReserved,
    /// Payments did not charge, and will not.
    PaymentDeclined,
    /// Payments gave the money back.
    RefundIssued,
    /// The customer asks to cancel.
    CustomerCancel,
    /// The flow took too long.
    Deadline,
}

/// What to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Confirm the order and say so.
    Confirm,
    /// Cancel the order and say so.
    Cancel(CancelReason),
    /// Change nothing.
    Keep(Kept),
    /// There is no such order here. A fact about it is tried again, and kept as a dead letter if the order never appears.
    Unknown,
}

/// Why an input changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The order was confirmed before.
    AlreadyConfirmed,
    /// The order was cancelled before: whoever acted for it hears that and undoes it.
    AlreadyCancelled,
    /// The order is confirmed, so what the fact says cannot be. Nothing is changed on its word.
    ContradictsConfirmed,
}

/// Decides. `status` is none when the order is not known.
#[must_use]
pub fn on(status: Option<&Status>, input: Input) -> Decision {
    use Input::{CustomerCancel, Deadline, InventoryReserved, PaymentDeclined, RefundIssued};
    match (status, input) {
        (None, _) => Decision::Unknown,
        (Some(Status::Pending), InventoryReserved) => Decision::Confirm,
        (Some(Status::Pending), PaymentDeclined) => Decision::Cancel(CancelReason::PaymentDeclined),
        // The only refund that can reach a pending order undoes a charge whose stock could not be reserved.
        (Some(Status::Pending), RefundIssued) => Decision::Cancel(CancelReason::OutOfStock),
        (Some(Status::Pending), CustomerCancel) => Decision::Cancel(CancelReason::Customer),
        (Some(Status::Pending), Deadline) => Decision::Cancel(CancelReason::Deadline),
        (Some(Status::Confirmed), InventoryReserved | CustomerCancel | Deadline) => {
            Decision::Keep(Kept::AlreadyConfirmed)
        }
        (Some(Status::Confirmed), PaymentDeclined | RefundIssued) => Decision::Keep(Kept::ContradictsConfirmed),
        (Some(Status::Cancelled(_)), _) => Decision::Keep(Kept::AlreadyCancelled),
    }
}

impl Kept {
    /// The reason as it is recorded and counted.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AlreadyConfirmed => "already_confirmed",
            Self::AlreadyCancelled => "already_cancelled",
            Self::ContradictsConfirmed => "contradicts_confirmed",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Confirm => f.write_str("confirm"),
            Self::Cancel(reason) => write!(f, "cancel: {reason}"),
            Self::Keep(kept) => write!(f, "keep: {}", kept.as_str()),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests;
