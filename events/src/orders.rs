//! What the orders service says.

use envelope::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Contract, Money, Outcome, Sku, open_enum::open_enum};

/// A customer placed an order. It is pending: payment and stock are still to be settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OrderCreated {
    /// The order, also the key and the correlation id of its whole flow.
    pub order_id: Uuid,
    /// Who ordered and will be charged.
    pub customer_id: Uuid,
    /// What the customer is charged: the sum of quantity times unit price over all lines.
    pub total: Money,
    /// What was ordered, one line per SKU.
    #[schemars(length(min = 1))]
    pub lines: Vec<OrderLine>,
}

/// One position of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OrderLine {
    /// What is ordered.
    pub sku: Sku,
    /// How many pieces.
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub quantity: u32,
    /// Price of one piece, in the currency of the order's total.
    pub unit_price: Money,
}

/// The order is paid and its stock is reserved: it will be delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OrderConfirmed {
    /// The order, also the key and the correlation id.
    pub order_id: Uuid,
}

/// The order will not be delivered. Whoever charged or reserved for it undoes that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OrderCancelled {
    /// The order, also the key and the correlation id.
    pub order_id: Uuid,
    /// Why. An open set: readers must expect codes that are added later.
    pub reason: CancelReason,
}

open_enum! {
    /// Why an order was cancelled. Open: more codes may be added.
    pub enum CancelReason {
        /// The payment was declined.
        PaymentDeclined = "payment_declined",
        /// Not every line could be reserved.
        OutOfStock = "out_of_stock",
        /// The customer asked for it.
        Customer = "customer",
        /// The flow did not end in time.
        Deadline = "deadline",
    }
}

impl Event for OrderCreated {
    const DOMAIN: &'static str = "orders";
    const NAME: &'static str = "order_created";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 1;

    fn key(&self) -> String {
        self.order_id.to_string()
    }
}

impl Contract for OrderCreated {
    const KEY: &'static str = "order_id";
    const OUTCOMES: &'static [Outcome] = &[Outcome::Entry, Outcome::Effect { undone_by: "orders.order_cancelled" }];
}

impl Event for OrderConfirmed {
    const DOMAIN: &'static str = "orders";
    const NAME: &'static str = "order_confirmed";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 1;

    fn key(&self) -> String {
        self.order_id.to_string()
    }
}

impl Contract for OrderConfirmed {
    const KEY: &'static str = "order_id";
    const OUTCOMES: &'static [Outcome] = &[Outcome::End];
}

impl Event for OrderCancelled {
    const DOMAIN: &'static str = "orders";
    const NAME: &'static str = "order_cancelled";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 1;

    fn key(&self) -> String {
        self.order_id.to_string()
    }
}

impl Contract for OrderCancelled {
    const KEY: &'static str = "order_id";
    const OUTCOMES: &'static [Outcome] = &[Outcome::Undo, Outcome::End];
}
