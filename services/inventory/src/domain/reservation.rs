//! Every state of a reservation against everything that can happen to it. `docs/services/inventory.md` holds the same
//! table; a test compares the two.

use std::fmt;

use uuid::Uuid;

use super::Demand;

/// What inventory knows and has done about one order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reservation {
    /// The order is known, its payment is not.
    Noted(Demand),
    /// The payment is known, the order's lines are not.
    Paid,
    /// Every line is set aside.
    Reserved(Held),
    /// Nothing is set aside, nothing will be, and that was said.
    Failed,
    /// What was set aside is free again.
    Released,
    /// A tombstone: the order was cancelled before its stock was set aside, and no payment is known.
    Cancelled,
    /// A tombstone like [`Reservation::Cancelled`], but the payment is known and still waits for its answer.
    CancelledPaid,
}

/// What is set aside for one order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Names the reservation.
    pub reservation_id: Uuid,
    /// What is set aside.
    pub demand: Demand,
}

/// What can move a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// An order exists and asks for these lines.
    OrderCreated(Demand),
    /// The order is paid.
    PaymentProcessed,
    /// The order was cancelled.
    OrderCancelled,
}

/// What to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Remember the lines and wait for the payment.
    Note(Demand),
    /// Remember the payment and wait for the lines.
    AwaitOrder,
    /// Ask the stock; set aside every line or none, and say which.
    Reserve(Demand),
    /// Set nothing aside and say so: the order is cancelled.
    Refuse,
    /// Free exactly what is held and say so.
    Release(Held),
    /// Leave a tombstone: a payment that comes later is refused.
    Block,
    /// Leave a tombstone: the payment that is known is refused when the order comes.
    BlockPaid,
    /// Change nothing.
    Keep(Kept),
}

/// Why an input changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The lines are remembered.
    AlreadyNoted,
    /// The payment is remembered.
    AlreadyPaid,
    /// The lines were set aside before.
    AlreadyReserved,
    /// The reservation failed before.
    AlreadyFailed,
    /// The lines were freed before.
    AlreadyReleased,
    /// The tombstone is there.
    AlreadyCancelled,
    /// There is nothing to free.
    NothingReserved,
}

/// Decides. `reservation` is none when nothing is known about the order.
#[must_use]
pub fn on(reservation: Option<&Reservation>, input: &Input) -> Decision {
    use Input::{OrderCancelled, OrderCreated, PaymentProcessed};
    match (reservation, input) {
        (None, OrderCreated(demand)) => Decision::Note(demand.clone()),
        (None, PaymentProcessed) => Decision::AwaitOrder,
        (None, OrderCancelled) => Decision::Block,
        (Some(Reservation::Noted(_)), OrderCreated(_)) => Decision::Keep(Kept::AlreadyNoted),
        (Some(Reservation::Noted(demand)), PaymentProcessed) => Decision::Reserve(demand.clone()),
        (Some(Reservation::Noted(_)), OrderCancelled) => Decision::Block,
        (Some(Reservation::Paid), OrderCreated(demand)) => Decision::Reserve(demand.clone()),
        (Some(Reservation::Paid), PaymentProcessed) => Decision::Keep(Kept::AlreadyPaid),
        (Some(Reservation::Paid), OrderCancelled) => Decision::BlockPaid,
        (Some(Reservation::Reserved(_)), OrderCreated(_) | PaymentProcessed) => Decision::Keep(Kept::AlreadyReserved),
        (Some(Reservation::Reserved(held)), OrderCancelled) => Decision::Release(held.clone()),
        (Some(Reservation::Failed), OrderCreated(_) | PaymentProcessed) => Decision::Keep(Kept::AlreadyFailed),
        (Some(Reservation::Failed), OrderCancelled) => Decision::Keep(Kept::NothingReserved),
        (Some(Reservation::Released), _) => Decision::Keep(Kept::AlreadyReleased),
        (Some(Reservation::Cancelled), PaymentProcessed) => Decision::Refuse,
        (Some(Reservation::CancelledPaid), OrderCreated(_)) => Decision::Refuse,
        (Some(Reservation::Cancelled), OrderCreated(_) | OrderCancelled)
        | (Some(Reservation::CancelledPaid), PaymentProcessed | OrderCancelled) => {
            Decision::Keep(Kept::AlreadyCancelled)
        }
    }
}

impl Kept {
    /// The reason as it is recorded and counted.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AlreadyNoted => "already_noted",
            Self::AlreadyPaid => "already_paid",
            Self::AlreadyReserved => "already_reserved",
            Self::AlreadyFailed => "already_failed",
            Self::AlreadyReleased => "already_released",
            Self::AlreadyCancelled => "already_cancelled",
            Self::NothingReserved => "nothing_reserved",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Note(_) => f.write_str("note"),
            Self::AwaitOrder => f.write_str("await the order"),
            Self::Reserve(_) => f.write_str("reserve or fail"),
            Self::Refuse => f.write_str("fail: order_cancelled"),
            Self::Release(_) => f.write_str("release"),
            Self::Block => f.write_str("block"),
            Self::BlockPaid => f.write_str("block, paid"),
            Self::Keep(kept) => write!(f, "keep: {}", kept.as_str()),
        }
    }
}

#[cfg(test)]
mod tests;
