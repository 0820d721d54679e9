//! Accounts and entries as HTTP shows them: amounts are bare integers of minor units beside one currency.

use envelope::Timestamp;
use events::Currency;
use serde::Serialize;
use uuid::Uuid;

use crate::domain::{Account, Entry};
use crate::ledger::Recorded;

/// The representation of an [`Account`].
#[derive(Debug, Serialize)]
pub(super) struct AccountView {
    customer_id: Uuid,
    currency: Currency,
    balance: i64,
    version: i64,
}

impl From<&Account> for AccountView {
    fn from(account: &Account) -> Self {
        let Account { customer_id, balance, version, .. } = *account;
        Self { customer_id, currency: balance.currency, balance: balance.minor, version }
    }
}

/// The representation of an [`Entry`] as it stands in the ledger.
#[derive(Debug, Serialize)]
pub(super) struct EntryView {
    pub(super) version: i64,
    kind: &'static str,
    /// Signed: all entries add up to the balance.
    amount: i64,
    currency: Currency,
    order_id: Option<Uuid>,
    payment_id: Option<Uuid>,
    refund_id: Option<Uuid>,
    recorded_at: Timestamp,
}

impl From<&Recorded> for EntryView {
    fn from(recorded: &Recorded) -> Self {
        let Recorded { version, entry, recorded_at } = *recorded;
        let (money, order_id, payment_id, refund_id) = match entry {
            Entry::Opened { balance } => (balance, None, None, None),
            Entry::Deposited { amount } => (amount, None, None, None),
            Entry::Charged { order_id, payment_id, amount } => (amount, Some(order_id), Some(payment_id), None),
            Entry::Refunded { order_id, payment_id, refund_id, amount } => {
                (amount, Some(order_id), Some(payment_id), Some(refund_id))
            }
        };
        Self {
            version,
            kind: entry.kind(),
            amount: entry.change(),
            currency: money.currency,
            order_id,
            payment_id,
            refund_id,
            recorded_at,
        }
    }
}
