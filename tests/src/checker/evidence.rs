//! What a run left behind, as plain rows.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{Reaction, Stored};

/// Everything that the checks look at.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// `orders` with the stage of `flow_state`.
    pub orders: BTreeMap<Uuid, OrderRow>,
    /// `event_store`, by account and version.
    pub ledger: Vec<LedgerEntry>,
    /// `payment`.
    pub payments: BTreeMap<Uuid, PaymentRow>,
    /// `stock`.
    pub stock: BTreeMap<String, StockRow>,
    /// `reservation`.
    pub reservations: BTreeMap<Uuid, ReservationRow>,
    /// What the services answer over HTTP.
    pub shown: Shown,
    /// The tables of the runtime, by service.
    pub mesh: BTreeMap<String, MeshTables>,
    /// The stream, in its order.
    pub stream: Vec<Stored>,
    /// What is declared to react to what.
    pub reactions: Vec<Reaction>,
}

/// One order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderRow {
    /// `pending`, `confirmed` or `cancelled`.
    pub status: String,
    /// Why it was cancelled.
    pub cancel_reason: Option<String>,
    /// Minor units.
    pub total: i64,
    /// `open`, `confirmed` or `cancelled`.
    pub stage: String,
}

/// One entry of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Whose account.
    pub customer_id: Uuid,
    /// Its place in the account, from 1.
    pub version: i64,
    /// `opened`, `deposited`, `charged` or `refunded`.
    pub kind: String,
    /// The order that it is about.
    pub order_id: Option<Uuid>,
    /// The debit that it names.
    pub payment_id: Option<Uuid>,
    /// Minor units, never negative.
    pub minor: i64,
}

/// What payments decided about an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentRow {
    /// `charged`, `declined`, `refunded` or `blocked`.
    pub state: String,
    /// Minor units that were charged.
    pub amount: Option<i64>,
}

/// The stock of one SKU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StockRow {
    /// Pieces in the house.
    pub on_hand: i64,
    /// Pieces set aside.
    pub reserved: i64,
}

/// What inventory did about an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservationRow {
    /// `noted`, `paid`, `reserved`, `failed`, `released`, `cancelled` or `cancelled_paid`.
    pub state: String,
    /// Pieces per SKU.
    pub pieces: BTreeMap<String, i64>,
}

/// What the services say over HTTP.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// Status and reason of each order.
    pub orders: BTreeMap<Uuid, (String, Option<String>)>,
    /// Balance of each account, in minor units.
    pub balances: BTreeMap<Uuid, i64>,
    /// On hand, reserved and available of each SKU.
    pub stock: BTreeMap<String, (i64, i64, i64)>,
}

/// The tables of the runtime in one database.
#[derive(Debug, Clone, Default)]
pub struct MeshTables {
    /// Ids in `outbox` and `outbox_dead`: committed and not in the stream.
    pub unsent: Vec<Uuid>,
    /// `outbox_sent`.
    pub sent: Vec<SentRow>,
    /// `inbox`: which subscriber settled which fact.
    pub settled: Vec<(Uuid, String)>,
    /// `inbox`: which subscriber has kept which fact as a dead letter.
    pub kept: Vec<(Uuid, String)>,
    /// `dead_letter`, with the id of the fact.
    pub dead: Vec<(Uuid, DeadLetter)>,
    /// `delivery_attempt`: deliveries that failed and have not settled.
    pub unsettled: Vec<(Uuid, String)>,
    /// `key_version`.
    pub versions: BTreeMap<String, i64>,
}

/// One acknowledged fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentRow {
    /// Id of the fact.
    pub event_id: Uuid,
    /// `<domain>.<fact>.v<major>`.
    pub event_type: String,
    /// What it is about.
    pub key: String,
    /// The version of the key.
    pub key_version: i64,
    /// The bytes of the body.
    pub payload: Vec<u8>,
    /// Where the stream said that it stored it.
    pub stream_sequence: i64,
}

/// A delivery that was given up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadLetter {
    /// Who gave it up.
    pub service: String,
    /// Which of its subscribers.
    pub subscriber: String,
    /// The code of the reason.
    pub reason: String,
}
