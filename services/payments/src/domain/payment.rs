//! Every state of a payment against everything that can happen to it. `docs/services/payments.md` holds the same table; a
//! test compares the two.

use std::fmt;

use events::{DeclineReason, Money, RefundReason};
use uuid::Uuid;

/// What was done about one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payment {
    /// The customer was charged.
    Charged(Charge),
    /// The customer was not charged and will not be.
    Declined,
    /// The customer was charged and has the money back.
    Refunded(Charge),
    /// A tombstone: the order was undone before it was charged, and must not be charged any more.
    Blocked,
}

/// What an order asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bill {
    /// Whose account is to pay.
    pub customer_id: Uuid,
    /// How much; above zero.
    pub amount: Money,
}

/// A bill that was paid: one debit of an account for one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// Names the debit.
    pub payment_id: Uuid,
    /// What was paid.
    pub bill: Bill,
}

/// A bill for nothing, or for less than nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an amount of {0} minor units cannot be charged")]
pub struct NotPositive(i64);

/// What can move a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// An order asks to be paid.
    OrderCreated(Bill),
    /// Inventory could not reserve, and will not.
    InventoryFailed,
    /// The order was cancelled.
    OrderCancelled,
}

/// What to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Ask the account; charge or decline, and say which.
    Charge(Bill),
    /// Charge nothing and say so.
    Decline(Bill, DeclineReason),
    /// Give exactly this charge back and say so.
    Refund(Charge, RefundReason),
    /// Leave a tombstone: whatever asks for the charge later is declined.
    Block,
    /// Change nothing.
    Keep(Kept),
}

/// Why an input changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The order was charged before.
    AlreadyCharged,
    /// The order was declined before.
    AlreadyDeclined,
    /// The money was given back before.
    AlreadyRefunded,
    /// The tombstone is there.
    AlreadyBlocked,
    /// There is nothing to give back.
    NothingCharged,
}

/// Decides. `payment` is none when nothing is known about the order.
#[must_use]
pub fn on(payment: Option<&Payment>, input: Input) -> Decision {
    use Input::{InventoryFailed, OrderCancelled, OrderCreated};
    match (payment, input) {
        (None, OrderCreated(bill)) => Decision::Charge(bill),
        (None, InventoryFailed | OrderCancelled) => Decision::Block,
        (Some(Payment::Charged(_)), OrderCreated(_)) => Decision::Keep(Kept::AlreadyCharged),
        (Some(Payment::Charged(charge)), InventoryFailed) => Decision::Refund(*charge, RefundReason::InventoryFailed),
        (Some(Payment::Charged(charge)), OrderCancelled) => Decision::Refund(*charge, RefundReason::OrderCancelled),
        (Some(Payment::Declined), OrderCreated(_)) => Decision::Keep(Kept::AlreadyDeclined),
        (Some(Payment::Declined), InventoryFailed | OrderCancelled) => Decision::Keep(Kept::NothingCharged),
        (Some(Payment::Refunded(_)), _) => Decision::Keep(Kept::AlreadyRefunded),
        (Some(Payment::Blocked), OrderCreated(bill)) => Decision::Decline(bill, DeclineReason::OrderCancelled),
        (Some(Payment::Blocked), InventoryFailed | OrderCancelled) => Decision::Keep(Kept::AlreadyBlocked),
    }
}

impl Bill {
    /// A bill over `amount`.
    ///
    /// # Errors
    /// When the amount is not above zero.
    pub fn new(customer_id: Uuid, amount: Money) -> Result<Self, NotPositive> {
        if amount.minor > 0 { Ok(Self { customer_id, amount }) } else { Err(NotPositive(amount.minor)) }
    }
}

impl Kept {
    /// The reason as it is recorded and counted.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AlreadyCharged => "already_charged",
            Self::AlreadyDeclined => "already_declined",
            Self::AlreadyRefunded => "already_refunded",
            Self::AlreadyBlocked => "already_blocked",
            Self::NothingCharged => "nothing_charged",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Charge(_) => f.write_str("charge or decline"),
            Self::Decline(_, reason) => write!(f, "decline: {reason}"),
            Self::Refund(_, reason) => write!(f, "refund: {reason}"),
            Self::Block => f.write_str("block"),
            Self::Keep(kept) => write!(f, "keep: {}", kept.as_str()),
        }
    }
}

#[cfg(test)]
mod tests;
