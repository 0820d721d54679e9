//! What the payments service says.

use envelope::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Contract, Money, Outcome, open_enum::open_enum};

/// The customer's account was debited for an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentProcessed {
    /// The order that was paid for.
    pub order_id: Uuid,
    /// The payment, one per order.
    pub payment_id: Uuid,
    /// Whose account was debited.
    pub customer_id: Uuid,
    /// What was debited.
    pub amount: Money,
}

/// The customer's account was not debited, and will not be for this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentDeclined {
    /// The order that is not paid for.
    pub order_id: Uuid,
    /// Whose account was asked for.
    pub customer_id: Uuid,
    /// What should have been debited.
    pub amount: Money,
    /// Why not. An open set: readers must expect codes that are added later.
    pub reason: DeclineReason,
}

/// A payment was credited back to the customer's account, once and in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefundIssued {
    /// The order whose payment was undone.
    pub order_id: Uuid,
    /// The payment that was undone.
    pub payment_id: Uuid,
    /// The refund, one per payment.
    pub refund_id: Uuid,
    /// What was credited.
    pub amount: Money,
    /// Why. An open set: readers must expect codes that are added later.
    pub reason: RefundReason,
}

open_enum! {
    /// Why a payment was declined. Open: more codes may be added.
    pub enum DeclineReason {
        /// The balance is below the amount.
        InsufficientFunds = "insufficient_funds",
        /// The customer has no account.
        UnknownAccount = "unknown_account",
        /// The account is held in another currency.
        CurrencyMismatch = "currency_mismatch",
        /// The order was cancelled before it was paid.
        OrderCancelled = "order_cancelled",
    }
}

open_enum! {
    /// Why a payment was refunded. Open: more codes may be added.
    pub enum RefundReason {
        /// The stock could not be reserved.
        InventoryFailed = "inventory_failed",
        /// The order was cancelled.
        OrderCancelled = "order_cancelled",
    }
}

impl Event for PaymentProcessed {
    const DOMAIN: &'static str = "payments";
    const NAME: &'static str = "payment_processed";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 1;

    fn key(&self) -> String {
        self.order_id.to_string()
    }
}

impl Contract for PaymentProcessed {
    const KEY: &'static str = "order_id";
    const OUTCOMES: &'static [Outcome] = &[Outcome::Effect { undone_by: "payments.refund_issued" }];
}

impl Event for PaymentDeclined {
    const DOMAIN: &'static str = "payments";
    const NAME: &'static str = "payment_declined";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 1;

    fn key(&self) -> String {
        self.order_id.to_string()
    }
}

impl Contract for PaymentDeclined {
    const KEY: &'static str = "order_id";
    const OUTCOMES: &'static [Outcome] = &[Outcome::Failure];
}

impl Event for RefundIssued {
    const DOMAIN: &'static str = "payments";
    const NAME: &'static str = "refund_issued";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 1;

    fn key(&self) -> String {
        self.order_id.to_string()
    }
}

impl Contract for RefundIssued {
    const KEY: &'static str = "order_id";
    const OUTCOMES: &'static [Outcome] = &[Outcome::Undo];
}
