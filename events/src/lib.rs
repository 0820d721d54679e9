//! The contracts: every fact of the shop, versioned.
//!
//! One module per owning service says what that service says. [`all`] lists the facts with their schemas, [`flow`] what is
//! expected after what, [`catalogue`] who reacts to what. The committed forms, for readers in any language, are in
//! `schemas/` and `catalogue/`; tests hold them equal to the code.

pub mod asyncapi;
pub mod catalogue;
pub mod contract;
pub mod flow;
pub mod inventory;
pub mod money;
mod open_enum;
pub mod orders;
mod outcome;
pub mod payments;
mod sku;

pub use contract::{Contract, FactDeclaration, all, declare, fact};
pub use inventory::{FailureReason, InventoryFailed, InventoryReleased, InventoryReserved, Shortage, StockLine};
pub use money::{Currency, Money, MoneyError};
pub use orders::{CancelReason, OrderCancelled, OrderConfirmed, OrderCreated, OrderLine};
pub use outcome::{Outcome, OutcomeKind};
pub use payments::{DeclineReason, PaymentDeclined, PaymentProcessed, RefundIssued, RefundReason};
pub use sku::{Sku, SkuError};
