//! An order as HTTP shows it: amounts are bare integers of minor units beside one currency.

use envelope::Timestamp;
use events::{CancelReason, Currency, Sku};
use serde::Serialize;
use uuid::Uuid;

use crate::domain::Order;

/// The representation of an [`Order`].
#[derive(Debug, Serialize)]
pub(super) struct OrderView<'a> {
    pub(super) order_id: Uuid,
    customer_id: Uuid,
    currency: Currency,
    total: i64,
    lines: Vec<LineView<'a>>,
    status: &'static str,
    cancel_reason: Option<&'a CancelReason>,
    version: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Debug, Serialize)]
struct LineView<'a> {
    sku: &'a Sku,
    quantity: u32,
    unit_price: i64,
}

impl<'a> From<&'a Order> for OrderView<'a> {
    fn from(order: &'a Order) -> Self {
        let lines = order.lines.iter();
        Self {
            order_id: order.order_id,
            customer_id: order.customer_id,
            currency: order.total.currency,
            total: order.total.minor,
            lines: lines
                .map(|line| LineView { sku: &line.sku, quantity: line.quantity, unit_price: line.unit_price.minor })
                .collect(),
            status: order.status.as_str(),
            cancel_reason: order.status.cancel_reason(),
            version: order.version,
            created_at: order.created_at,
            updated_at: order.updated_at,
        }
    }
}
