//! What the inventory service says.

use envelope::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Contract, Outcome, Sku, open_enum::open_enum};

/// Every line of an order is set aside in stock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InventoryReserved {
    /// The order that it is set aside for.
    pub order_id: Uuid,
    /// The reservation, one per order.
    pub reservation_id: Uuid,
    /// What is set aside, one line per SKU.
    #[schemars(length(min = 1))]
    pub lines: Vec<StockLine>,
}

/// Nothing is set aside for an order, and nothing will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InventoryFailed {
    /// The order that gets nothing.
    pub order_id: Uuid,
    /// Why. An open set: readers must expect codes that are added later.
    pub reason: FailureReason,
    /// What was missing, one entry per SKU; empty when the reason is not the stock.
    pub shortages: Vec<Shortage>,
}

/// What was set aside for an order is free again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InventoryReleased {
    /// The order that it was set aside for.
    pub order_id: Uuid,
    /// The reservation that was undone.
    pub reservation_id: Uuid,
    /// What is free again, one line per SKU.
    #[schemars(length(min = 1))]
    pub lines: Vec<StockLine>,
}

/// A quantity of one SKU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StockLine {
    /// What.
    pub sku: Sku,
    /// How many pieces.
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub quantity: u32,
}

/// A SKU of which there was less than the order asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shortage {
    /// What is missing.
    pub sku: Sku,
    /// How many pieces the order asked for.
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub requested: u32,
    /// How many pieces could have been set aside.
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub available: u32,
}

open_enum! {
    /// Why stock could not be set aside. Open: more codes may be added.
    pub enum FailureReason {
        /// There is less than the order asks for.
        OutOfStock = "out_of_stock",
        /// A SKU that is not kept in stock.
        UnknownSku = "unknown_sku",
        /// The order was cancelled before stock was set aside.
        OrderCancelled = "order_cancelled",
    }
}

impl Event for InventoryReserved {
    const DOMAIN: &'static str = "inventory";
    const NAME: &'static str = "inventory_reserved";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 1;

    fn key(&self) -> String {
        self.order_id.to_string()
    }
}

impl Contract for InventoryReserved {
    const KEY: &'static str = "order_id";
    const OUTCOMES: &'static [Outcome] = &[Outcome::Effect { undone_by: "inventory.inventory_released" }];
}

impl Event for InventoryFailed {
    const DOMAIN: &'static str = "inventory";
    const NAME: &'static str = "inventory_failed";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 1;

    fn key(&self) -> String {
        self.order_id.to_string()
    }
}

impl Contract for InventoryFailed {
    const KEY: &'static str = "order_id";
    const OUTCOMES: &'static [Outcome] = &[Outcome::Failure];
}

impl Event for InventoryReleased {
    const DOMAIN: &'static str = "inventory";
    const NAME: &'static str = "inventory_released";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 1;

    fn key(&self) -> String {
        self.order_id.to_string()
    }
}

impl Contract for InventoryReleased {
    const KEY: &'static str = "order_id";
    const OUTCOMES: &'static [Outcome] = &[Outcome::Undo];
}
