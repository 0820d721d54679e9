//! Pages of orders, newest first. The ids are time-ordered, so the last id of a page is where the next one begins.

use sqlx::PgConnection;
use uuid::Uuid;

use super::row::{OrderRow, select_orders};
use crate::domain::Order;

/// Which orders are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those of this customer.
    pub customer_id: Option<Uuid>,
    /// Only those of this status, by its word.
    pub status: Option<&'static str>,
}

/// At most `limit` orders that are older than `before`, newest first. Each shape of filter has its own statement and index.
///
/// # Errors
/// When the statement fails or a row is no order.
pub async fn list(
    connection: &mut PgConnection,
    filter: Filter,
    before: Option<Uuid>,
    limit: i64,
) -> sqlx::Result<Vec<Order>> {
    let before = before.unwrap_or(Uuid::max());
    let rows = match filter {
        Filter { customer_id: Some(customer_id), status } => {
            select_orders!(
                "where customer_id = $1 and ($2::text is null or status = $2) and order_id < $3
                 order by order_id desc limit $4",
                customer_id,
                status,
                before,
                limit
            )
            .fetch_all(connection)
            .await?
        }
        Filter { customer_id: None, status: Some(status) } => {
            select_orders!("where status = $1 and order_id < $2 order by order_id desc limit $3", status, before, limit)
                .fetch_all(connection)
                .await?
        }
        Filter { customer_id: None, status: None } => {
            select_orders!("where order_id < $1 order by order_id desc limit $2", before, limit)
                .fetch_all(connection)
                .await?
        }
    };
    rows.into_iter().map(OrderRow::into_order).collect()
}
