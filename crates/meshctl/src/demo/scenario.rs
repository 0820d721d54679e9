//! The four ways in which an order of the demonstration ends.

use uuid::Uuid;

use crate::dev::demo_data::{PLENTY, POOR, RICH, SOLD_OUT};

/// The price of one piece in minor units: more than the poor customer has.
pub(super) const UNIT_PRICE: i64 = 1_999;

/// One order and how it has to end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scenario {
    /// What is shown.
    pub(super) title: &'static str,
    pub(super) customer: Uuid,
    pub(super) sku: &'static str,
    /// Whether the customer cancels between charge and reservation.
    pub(super) cancelled_in_flight: bool,
    /// The status in the end.
    pub(super) status: &'static str,
    /// Why it was cancelled.
    pub(super) reason: Option<&'static str>,
    /// All facts of the flow, `<domain>.<fact>`, in any order, and no others.
    pub(super) facts: &'static [&'static str],
    /// What it costs the customer in the end.
    pub(super) charged: i64,
    /// How many pieces it keeps reserved in the end.
    pub(super) reserved: i64,
}

pub(super) const ALL: [Scenario; 4] = [
    Scenario {
        title: "confirmed",
        customer: RICH,
        sku: PLENTY,
        cancelled_in_flight: false,
        status: "confirmed",
        reason: None,
        facts: &[
            "orders.order_created",
            "payments.payment_processed",
            "inventory.inventory_reserved",
            "orders.order_confirmed",
        ],
        charged: UNIT_PRICE,
        reserved: 1,
    },
    Scenario {
        title: "declined",
        customer: POOR,
        sku: PLENTY,
        cancelled_in_flight: false,
        status: "cancelled",
        reason: Some("payment_declined"),
        facts: &["orders.order_created", "payments.payment_declined", "orders.order_cancelled"],
        charged: 0,
        reserved: 0,
    },
    Scenario {
        title: "out of stock and refunded",
        customer: RICH,
        sku: SOLD_OUT,
        cancelled_in_flight: false,
        status: "cancelled",
        reason: Some("out_of_stock"),
        facts: &[
            "orders.order_created",
            "payments.payment_processed",
            "inventory.inventory_failed",
            "payments.refund_issued",
            "orders.order_cancelled",
        ],
        charged: 0,
        reserved: 0,
    },
    Scenario {
        title: "cancelled in flight",
        customer: RICH,
        sku: PLENTY,
        cancelled_in_flight: true,
        status: "cancelled",
        reason: Some("customer"),
        // Inventory stands still until the refund is there. Then it hears the payment before the cancellation, because
        // that is their order in the stream: it reserves and releases.
        facts: &[
            "orders.order_created",
            "payments.payment_processed",
            "orders.order_cancelled",
            "payments.refund_issued",
            "inventory.inventory_reserved",
            "inventory.inventory_released",
        ],
        charged: 0,
        reserved: 0,
    },
];
