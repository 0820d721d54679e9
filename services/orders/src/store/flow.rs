//! Deadlines of flows, by the clock of the database.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::domain::Order;

/// An open flow whose deadline has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverdueFlow {
    /// The order that started it.
    pub order_id: Uuid,
    /// The fact that started it.
    pub created_event_id: Uuid,
}

/// The overdue flow that has waited longest and that nobody else is working on. It and its order stay locked until the
/// transaction ends. The order may have ended in the meantime: look at it before acting.
///
/// # Errors
/// When the statement fails.
pub async fn lock_overdue(connection: &mut PgConnection) -> sqlx::Result<Option<OverdueFlow>> {
    // Both rows are locked: a row that is only joined is judged as of the start of the statement, so a flow that another
    // replica has just closed would be taken again. Every other change of a flow locks the order and then writes the
    // flow; this one waits for neither, so it cannot deadlock with them.
    sqlx::query_as!(
        OverdueFlow,
        r#"
        select f.order_id, f.created_event_id
        from flow_state f join orders o on o.order_id = f.order_id
        where f.stage = 'open' and f.deadline_at <= now()
        order by f.deadline_at
        limit 1
        for update of o, f skip locked
        "#
    )
    .fetch_optional(connection)
    .await
}

/// Closes the flow of an order that has ended, if it is not closed yet, so that no deadline looks at it again.
///
/// # Errors
/// When the statement fails.
pub async fn close_flow(connection: &mut PgConnection, order: &Order) -> sqlx::Result<()> {
    sqlx::query!(
        "update flow_state set stage = $2, last_updated_at = now() where order_id = $1 and stage = 'open'",
        order.order_id,
        order.status.as_str(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// How many flows are open although their deadline has passed.
///
/// # Errors
/// When the statement fails.
pub async fn count_overdue(connection: &mut PgConnection) -> sqlx::Result<i64> {
    sqlx::query_scalar!(r#"select count(*) as "count!" from flow_state where stage = 'open' and deadline_at <= now()"#)
        .fetch_one(connection)
        .await
}
