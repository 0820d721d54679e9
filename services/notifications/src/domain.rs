//! What becomes of a fact: pure, and total over every state and fact.

use std::fmt;

use envelope::Timestamp;
use events::{CancelReason, Money};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

mod wording;

pub use wording::{body, subject};

/// One fact that its customer should hear of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The fact. One mail for each, recognisable by it.
    pub event_id: Uuid,
    /// The order that it is about.
    pub order_id: Uuid,
    /// When it happened: the date of the mail.
    pub at: Timestamp,
    /// What happened.
    pub news: News,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum News {
    /// The order is paid and its goods are set aside.
    Confirmed,
    /// The order will not be delivered.
    Cancelled {
        /// Why.
        reason: CancelReason,
    },
    /// The customer has the money back.
    Refunded {
        /// How much.
        amount: Money,
    },
}

/// What is known about whoever an order belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipient {
    /// The customer, once `OrderCreated` was heard.
    pub customer_id: Option<Uuid>,
    /// What waits for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Notice>,
}

/// Something that was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// `OrderCreated`, with the customer.
    Created(Uuid),
    /// Another fact.
    Notice(Notice),
}

/// What is done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// This is known from now on.
    Remember(Recipient),
    /// This is known from now on, and then the mails that were held back go out.
    SendHeld(Recipient),
    /// A mail to this customer.
    Send(Uuid, Notice),
    /// The mail waits for `OrderCreated`.
    Hold(Recipient),
    /// Nothing.
    Keep,
}

/// Decides. Facts of one order arrive in any order, each of them any number of times.
#[must_use]
pub fn on(known: Recipient, heard: Heard) -> Decision {
    match (known.customer_id, heard) {
        (None, Heard::Created(customer)) if known.held.is_empty() => {
            Decision::Remember(Recipient { customer_id: Some(customer), held: Vec::new() })
        }
        (None, Heard::Created(customer)) => {
            Decision::SendHeld(Recipient { customer_id: Some(customer), held: known.held })
        }
        // Whoever began to send them did not come to the end.
        (Some(_), Heard::Created(_)) if !known.held.is_empty() => Decision::SendHeld(known),
        (Some(_), Heard::Created(_)) => Decision::Keep,
        (Some(customer), Heard::Notice(notice)) => Decision::Send(customer, notice),
        (None, Heard::Notice(notice)) => {
            let mut held = known.held;
            if held.iter().all(|waiting| waiting.event_id != notice.event_id) {
                held.push(notice);
            }
            Decision::Hold(Recipient { customer_id: None, held })
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Remember(_) => "remember",
            Self::SendHeld(_) => "remember, mail what is held back",
            Self::Send(..) => "mail",
            Self::Hold(_) => "hold back",
            Self::Keep => "keep: already_known",
        })
    }
}

#[cfg(test)]
mod tests;
