//! The statements on the tables of this service. Functions take a connection, so that a transaction goes through them.

mod flow;
mod list;
mod row;

use std::time::Duration;

use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use crate::domain::{Order, Placement, Status};
use row::{OrderRow, select_orders};

pub use flow::{OverdueFlow, close_flow, count_overdue, lock_overdue};
pub use list::{Filter, list};

/// Inserts a pending order and opens its flow, which is given up `within` from now by the clock of the database.
/// `created_event_id` is the fact that tells others about the order.
///
/// # Errors
/// When the statement fails.
pub async fn insert(
    connection: &mut PgConnection,
    order_id: Uuid,
    placement: Placement,
    created_event_id: Uuid,
    within: Duration,
) -> sqlx::Result<Order> {
    let Placement { customer_id, total, lines } = placement;
    let placed = sqlx::query!(
        r#"
        with placed as (
            insert into orders (order_id, customer_id, currency, total, lines)
            values ($1, $2, $3, $4, $5)
            returning order_id, version, created_at, updated_at
        ), opened as (
            insert into flow_state (order_id, created_event_id, deadline_at)
            select order_id, $6, created_at + make_interval(secs => $7) from placed
        )
        select version, created_at, updated_at from placed
        "#,
        order_id,
        customer_id,
        total.currency.as_str(),
        total.minor,
        Json(&lines) as _,
        created_event_id,
        within.as_secs_f64(),
    )
    .fetch_one(connection)
    .await?;
    Ok(Order {
        order_id,
        customer_id,
        total,
        lines,
        status: Status::Pending,
        version: placed.version,
        created_at: placed.created_at.into(),
        updated_at: placed.updated_at.into(),
    })
}

/// Reads an order.
///
/// # Errors
/// When the statement fails or the row is no order.
pub async fn find(connection: &mut PgConnection, order_id: Uuid) -> sqlx::Result<Option<Order>> {
    let row = select_orders!("where order_id = $1", order_id).fetch_optional(connection).await?;
    row.map(OrderRow::into_order).transpose()
}

/// Reads an order and keeps others from changing it until the transaction ends.
///
/// # Errors
/// When the statement fails or the row is no order.
pub async fn lock(connection: &mut PgConnection, order_id: Uuid) -> sqlx::Result<Option<Order>> {
    let row = select_orders!("where order_id = $1 for update", order_id).fetch_optional(connection).await?;
    row.map(OrderRow::into_order).transpose()
}

/// Ends a pending order that this transaction has locked, and closes its flow.
///
/// # Errors
/// When the statement fails; [`sqlx::Error::RowNotFound`] when the order is not pending any more.
pub async fn settle(connection: &mut PgConnection, order: Order, status: Status) -> sqlx::Result<Order> {
    let settled = sqlx::query!(
        r#"
        with settled as (
            update orders
            set status = $3, cancel_reason = $4, version = version + 1, updated_at = now()
            where order_id = $1 and version = $2 and status = 'pending'
            returning order_id, version, updated_at
        )
        update flow_state f
        set stage = $3, last_updated_at = s.updated_at
        from settled s
        where f.order_id = s.order_id
        returning s.version, s.updated_at
        "#,
        order.order_id,
        order.version,
        status.as_str(),
        status.cancel_reason().map(events::CancelReason::as_str),
    )
    .fetch_one(connection)
    .await?;
    Ok(Order { status, version: settled.version, updated_at: settled.updated_at.into(), ..order })
}

#[cfg(test)]
mod tests;
