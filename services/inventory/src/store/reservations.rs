//! What inventory knows and has done about each order.

use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::changed;
use crate::domain::{Demand, Held, Reservation};

/// A row of `reservation`.
#[derive(Debug)]
struct ReservationRow {
    order_id: Uuid,
    state: String,
    reservation_id: Option<Uuid>,
    lines: Option<Json<Demand>>,
}

/// A row that is no reservation.
#[derive(Debug, thiserror::Error)]
#[error("the reservation of order {order_id} has an impossible {column}")]
struct Inconsistent {
    order_id: Uuid,
    column: &'static str,
}

/// Reads what is known about an order and keeps others from changing it until the transaction ends.
///
/// # Errors
/// When the statement fails or the row is no reservation.
pub async fn lock(connection: &mut PgConnection, order_id: Uuid) -> sqlx::Result<Option<Reservation>> {
    let row = sqlx::query_as!(
        ReservationRow,
        r#"
        select order_id, state, reservation_id, lines as "lines: Json<Demand>"
        from reservation
        where order_id = $1
        for update
        "#,
        order_id,
    )
    .fetch_optional(connection)
    .await?;
    row.map(ReservationRow::into_reservation).transpose()
}

/// Remembers the first thing that is known about an order.
///
/// # Errors
/// A unique violation when another fact about the order came at the same time: start over from a fresh read. Otherwise
/// when the statement fails.
pub async fn insert(connection: &mut PgConnection, order_id: Uuid, reservation: &Reservation) -> sqlx::Result<()> {
    let Columns { state, reservation_id, lines } = Columns::of(reservation);
    sqlx::query!(
        "insert into reservation (order_id, state, reservation_id, lines) values ($1, $2, $3, $4)",
        order_id,
        state,
        reservation_id,
        lines as _,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Moves an order that this transaction has locked from one state to the next.
///
/// # Errors
/// When the statement fails; [`sqlx::Error::RowNotFound`] when the order is not in the state `from`.
pub async fn advance(
    connection: &mut PgConnection,
    order_id: Uuid,
    from: &Reservation,
    to: &Reservation,
) -> sqlx::Result<()> {
    let Columns { state, reservation_id, lines } = Columns::of(to);
    let done = sqlx::query!(
        r#"
        update reservation
        set state = $3, reservation_id = coalesce($4, reservation_id), lines = coalesce($5, lines),
            version = version + 1, updated_at = now()
        where order_id = $1 and state = $2
        "#,
        order_id,
        Columns::of(from).state,
        state,
        reservation_id,
        lines as _,
    )
    .execute(connection)
    .await?;
    changed(done.rows_affected(), 1)
}

/// A reservation as columns.
struct Columns<'a> {
    state: &'static str,
    reservation_id: Option<Uuid>,
    lines: Option<Json<&'a Demand>>,
}

impl<'a> Columns<'a> {
    fn of(reservation: &'a Reservation) -> Self {
        let (state, reservation_id, lines) = match reservation {
            Reservation::Noted(demand) => ("noted", None, Some(demand)),
            Reservation::Paid => ("paid", None, None),
            Reservation::Reserved(Held { reservation_id, demand }) => ("reserved", Some(*reservation_id), Some(demand)),
            Reservation::Failed => ("failed", None, None),
            Reservation::Released => ("released", None, None),
            Reservation::Cancelled => ("cancelled", None, None),
            Reservation::CancelledPaid => ("cancelled_paid", None, None),
        };
        Self { state, reservation_id, lines: lines.map(Json) }
    }
}

impl ReservationRow {
    fn into_reservation(self) -> sqlx::Result<Reservation> {
        let wrong = |column| sqlx::Error::Decode(Box::new(Inconsistent { order_id: self.order_id, column }));
        let demand = self.lines.map(|Json(demand)| demand);
        match (self.state.as_str(), self.reservation_id) {
            ("noted", None) => demand.map(Reservation::Noted).ok_or_else(|| wrong("lines")),
            ("reserved", Some(reservation_id)) => {
                let demand = demand.ok_or_else(|| wrong("lines"))?;
                Ok(Reservation::Reserved(Held { reservation_id, demand }))
            }
            ("released", Some(_)) => Ok(Reservation::Released),
            ("paid", None) => Ok(Reservation::Paid),
            ("failed", None) => Ok(Reservation::Failed),
            ("cancelled", None) => Ok(Reservation::Cancelled),
            ("cancelled_paid", None) => Ok(Reservation::CancelledPaid),
            _ => Err(wrong("state")),
        }
    }
}

#[cfg(test)]
mod tests;
