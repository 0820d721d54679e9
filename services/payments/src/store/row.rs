//! From a row to a payment.

use events::Money;
use serde_json::json;
use uuid::Uuid;

use crate::domain::{Bill, Charge, Payment};

/// A row of `payment`.
#[derive(Debug)]
pub(super) struct PaymentRow {
    pub(super) order_id: Uuid,
    pub(super) state: String,
    pub(super) customer_id: Option<Uuid>,
    pub(super) payment_id: Option<Uuid>,
    pub(super) amount: Option<i64>,
    pub(super) currency: Option<String>,
    pub(super) scale: Option<i16>,
}

/// A row that is no payment.
#[derive(Debug, thiserror::Error)]
#[error("the payment of order {order_id} has an impossible {column}")]
struct Inconsistent {
    order_id: Uuid,
    column: &'static str,
}

impl PaymentRow {
    pub(super) fn into_payment(self) -> sqlx::Result<Payment> {
        match self.state.as_str() {
            "charged" => self.charge().map(Payment::Charged),
            "refunded" => self.charge().map(Payment::Refunded),
            "declined" => Ok(Payment::Declined),
            "blocked" => Ok(Payment::Blocked),
            _ => Err(self.wrong("state")),
        }
    }

    fn charge(&self) -> sqlx::Result<Charge> {
        let payment_id = self.payment_id.ok_or_else(|| self.wrong("payment_id"))?;
        let customer_id = self.customer_id.ok_or_else(|| self.wrong("customer_id"))?;
        // The scale is the one of the charge, whatever the table of currencies says today; only the stored form takes it.
        let amount = json!({ "minor": self.amount, "currency": self.currency, "scale": self.scale });
        let amount: Money = serde_json::from_value(amount).map_err(|_| self.wrong("amount"))?;
        let bill = Bill::new(customer_id, amount).map_err(|_| self.wrong("amount"))?;
        Ok(Charge { payment_id, bill })
    }

    fn wrong(&self, column: &'static str) -> sqlx::Error {
        sqlx::Error::Decode(Box::new(Inconsistent { order_id: self.order_id, column }))
    }
}
