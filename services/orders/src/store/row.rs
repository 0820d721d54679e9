//! From a row to an order.

use events::{CancelReason, OrderLine};
use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::domain::{Order, Status, TotalError, total};

/// A row of `orders`.
#[derive(Debug)]
pub(super) struct OrderRow {
    pub(super) order_id: Uuid,
    pub(super) customer_id: Uuid,
    pub(super) total: i64,
    pub(super) lines: Json<Vec<OrderLine>>,
    pub(super) status: String,
    pub(super) cancel_reason: Option<String>,
    pub(super) version: i64,
    pub(super) created_at: OffsetDateTime,
    pub(super) updated_at: OffsetDateTime,
}

/// `select` of all columns of [`OrderRow`], with the rest of the statement and its arguments.
macro_rules! select_orders {
    ($rest:tt $(, $argument:expr)* $(,)?) => {
        sqlx::query_as!(
            $crate::store::row::OrderRow,
            r#"
            select order_id, customer_id, total, lines as "lines: sqlx::types::Json<Vec<events::OrderLine>>", status,
                   cancel_reason, version, created_at, updated_at
            from orders
            "# + $rest,
            $($argument),*
        )
    };
}
pub(super) use select_orders;

/// A row that is no order.
#[derive(Debug, thiserror::Error)]
#[error("order {order_id} has an impossible {column}")]
struct Inconsistent {
    order_id: Uuid,
    column: &'static str,
    source: Option<TotalError>,
}

impl OrderRow {
    /// The order.
    pub(super) fn into_order(self) -> sqlx::Result<Order> {
        let order_id = self.order_id;
        let wrong = |column, source| sqlx::Error::Decode(Box::new(Inconsistent { order_id, column, source }));
        let total = total(&self.lines).map_err(|error| wrong("lines", Some(error)))?;
        if total.minor != self.total {
            return Err(wrong("total", None));
        }
        let status = match (self.status.as_str(), self.cancel_reason) {
            ("pending", None) => Status::Pending,
            ("confirmed", None) => Status::Confirmed,
            ("cancelled", Some(reason)) => Status::Cancelled(CancelReason::from(reason.as_str())),
            _ => return Err(wrong("status", None)),
        };
        Ok(Order {
            order_id,
            customer_id: self.customer_id,
            total,
            lines: self.lines.0,
            status,
            version: self.version,
            created_at: self.created_at.into(),
            updated_at: self.updated_at.into(),
        })
    }
}
