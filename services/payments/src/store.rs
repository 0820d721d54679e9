//! What was done about each order: the statements on `payment`.

mod row;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::domain::{Bill, Charge, Payment};
use row::PaymentRow;

/// Reads what was done about an order and keeps others from changing it until the transaction ends.
///
/// # Errors
/// When the statement fails or the row is no payment.
pub async fn lock(connection: &mut PgConnection, order_id: Uuid) -> sqlx::Result<Option<Payment>> {
    let row = sqlx::query_as!(
        PaymentRow,
        r#"
        select order_id, state, customer_id, payment_id, amount, currency, scale
        from payment
        where order_id = $1
        for update
        "#,
        order_id,
    )
    .fetch_optional(connection)
    .await?;
    row.map(PaymentRow::into_payment).transpose()
}

/// Remembers that an order was charged.
///
/// # Errors
/// A unique violation when something was decided about the order at the same time: start over from a fresh read.
/// Otherwise when the statement fails.
pub async fn insert_charged(connection: &mut PgConnection, order_id: Uuid, charge: &Charge) -> sqlx::Result<()> {
    let Charge { payment_id, bill: Bill { customer_id, amount } } = charge;
    sqlx::query!(
        r#"
        insert into payment (order_id, state, customer_id, payment_id, amount, currency, scale)
        values ($1, 'charged', $2, $3, $4, $5, $6)
        "#,
        order_id,
        customer_id,
        payment_id,
        amount.minor,
        amount.currency.as_str(),
        i16::from(amount.scale),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Remembers that an order of which nothing was known is declined.
///
/// # Errors
/// Those of [`insert_charged`].
pub async fn insert_declined(connection: &mut PgConnection, order_id: Uuid) -> sqlx::Result<()> {
    sqlx::query!("insert into payment (order_id, state) values ($1, 'declined')", order_id).execute(connection).await?;
    Ok(())
}

/// Leaves the tombstone of an order of which nothing was known.
///
/// # Errors
/// Those of [`insert_charged`].
pub async fn insert_blocked(connection: &mut PgConnection, order_id: Uuid) -> sqlx::Result<()> {
    sqlx::query!("insert into payment (order_id, state) values ($1, 'blocked')", order_id).execute(connection).await?;
    Ok(())
}

/// Remembers that a blocked order has asked for its charge and was declined.
///
/// # Errors
/// When the statement fails; [`sqlx::Error::RowNotFound`] when the order is not blocked.
pub async fn decline_blocked(connection: &mut PgConnection, order_id: Uuid) -> sqlx::Result<()> {
    let done = sqlx::query!(
        r#"
        update payment
        set state = 'declined', version = version + 1, updated_at = now()
        where order_id = $1 and state = 'blocked'
        "#,
        order_id,
    )
    .execute(connection)
    .await?;
    changed_one(done.rows_affected())
}

/// Remembers that exactly this charge was given back.
///
/// # Errors
/// When the statement fails; [`sqlx::Error::RowNotFound`] when the order is not charged so.
pub async fn refund(
    connection: &mut PgConnection,
    order_id: Uuid,
    payment_id: Uuid,
    refund_id: Uuid,
) -> sqlx::Result<()> {
    let done = sqlx::query!(
        r#"
        update payment
        set state = 'refunded', refund_id = $3, version = version + 1, updated_at = now()
        where order_id = $1 and payment_id = $2 and state = 'charged'
        "#,
        order_id,
        payment_id,
        refund_id,
    )
    .execute(connection)
    .await?;
    changed_one(done.rows_affected())
}

fn changed_one(rows: u64) -> sqlx::Result<()> {
    if rows == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

#[cfg(test)]
mod tests;
