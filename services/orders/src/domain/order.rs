//! An order as the service knows it.

use envelope::Timestamp;
use events::{CancelReason, Money, OrderLine};
use uuid::Uuid;

/// One order, from its placing to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The order, also the key and the correlation id of its flow.
    pub order_id: Uuid,
    /// Who ordered and is charged.
    pub customer_id: Uuid,
    /// What the customer is charged.
    pub total: Money,
    /// What was ordered, one line per SKU.
    pub lines: Vec<OrderLine>,
    /// How far it is.
    pub status: Status,
    /// Number of changes, the placing included.
    pub version: i64,
    /// When it was placed, by the clock of the database.
    pub created_at: Timestamp,
    /// When it changed last, by the clock of the database.
    pub updated_at: Timestamp,
}

/// How far an order is. Only a pending one may go on; the two ends are final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// Placed; nothing is promised to anybody yet.
    Pending,
    /// Paid and reserved.
    Confirmed,
    /// Given up, with the reason.
    Cancelled(CancelReason),
}

impl Status {
    /// The word for it in JSON and in the database.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Confirmed => "confirmed",
            Self::Cancelled(_) => "cancelled",
        }
    }

    /// Why it was given up, if it was.
    #[must_use]
    pub fn cancel_reason(&self) -> Option<&CancelReason> {
        match self {
            Self::Cancelled(reason) => Some(reason),
            Self::Pending | Self::Confirmed => None,
        }
    }
}
