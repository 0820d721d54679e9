//! An account as the fold of its entries.

use events::{DeclineReason, Money, MoneyError};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Bill, Charge};

/// One entry of an account's ledger. Entries are durable: a stored one must stay readable for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event_type", content = "payload", rename_all = "snake_case")]
pub enum Entry {
    /// The account exists; the first entry of every ledger.
    Opened {
        /// Nothing, in the only currency that the account is held in. The scale is kept with it: it may change in the
        /// table of currencies, not in this account.
        balance: Money,
    },
    /// The customer paid in.
    Deposited {
        /// How much.
        amount: Money,
    },
    /// The customer paid for an order.
    Charged {
        /// Which order.
        order_id: Uuid,
        /// Names the debit.
        payment_id: Uuid,
        /// How much.
        amount: Money,
    },
    /// A charge was given back.
    Refunded {
        /// Which order.
        order_id: Uuid,
        /// The debit that is undone.
        payment_id: Uuid,
        /// Names the credit.
        refund_id: Uuid,
        /// How much.
        amount: Money,
    },
}

/// The state of an account after all its entries up to `version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// Whose it is.
    pub customer_id: Uuid,
    /// What can be spent.
    pub balance: Money,
    /// Everything that was ever paid in. Charges and refunds never bring the balance above it, so that its bound is theirs:
    /// no refund can fail for being too large.
    pub deposited: Money,
    /// Number of entries.
    pub version: i64,
}

/// Entries that cannot follow each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// The first entry is not `opened`.
    #[error("the ledger does not begin with its opening")]
    NotOpened,
    /// A later entry is `opened`.
    #[error("the account is opened a second time")]
    OpenedTwice,
    /// More was charged than there was.
    #[error("the balance falls to {0} minor units")]
    Overdrawn(i64),
    /// The amounts do not add up.
    #[error(transparent)]
    Amount(#[from] MoneyError),
}

/// Why a deposit is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DepositRefused {
    /// Zero or less.
    #[error("must be above 0")]
    NotPositive,
    /// The account's deposits would add up to more than an amount can say.
    #[error("would bring all deposits of the account above {} minor units", envelope::INTEGER_MAX)]
    TooLarge,
}

impl Account {
    /// The state after one more entry. `before` is none for the first.
    ///
    /// # Errors
    /// When the entry cannot follow.
    pub fn after(before: Option<Self>, customer_id: Uuid, entry: &Entry) -> Result<Self, LedgerError> {
        match (before, *entry) {
            (None, Entry::Opened { balance }) => Ok(Self { customer_id, balance, deposited: balance, version: 1 }),
            (None, _) => Err(LedgerError::NotOpened),
            (Some(_), Entry::Opened { .. }) => Err(LedgerError::OpenedTwice),
            (Some(account), Entry::Deposited { amount }) => {
                let deposited = account.deposited.checked_add(amount)?;
                Self { deposited, ..account }.moved(amount)
            }
            (Some(account), Entry::Charged { amount, .. }) => account.moved(negated(amount)),
            (Some(account), Entry::Refunded { amount, .. }) => account.moved(amount),
        }
    }

    /// One entry further, the balance changed by `amount`.
    fn moved(self, amount: Money) -> Result<Self, LedgerError> {
        let balance = self.balance.checked_add(amount)?;
        if balance.minor < 0 {
            return Err(LedgerError::Overdrawn(balance.minor));
        }
        Ok(Self { balance, version: self.version + 1, ..self })
    }

    /// The entry that debits the account, if it covers the charge.
    ///
    /// # Errors
    /// Why the payment is declined.
    pub fn charge(&self, order_id: Uuid, charge: &Charge) -> Result<Entry, DeclineReason> {
        let Charge { payment_id, bill: Bill { amount, .. } } = *charge;
        if (amount.currency, amount.scale) != (self.balance.currency, self.balance.scale) {
            return Err(DeclineReason::CurrencyMismatch);
        }
        if amount.minor > self.balance.minor {
            return Err(DeclineReason::InsufficientFunds);
        }
        Ok(Entry::Charged { order_id, payment_id, amount })
    }

    /// The entry that credits the account with `minor` units.
    ///
    /// # Errors
    /// Why the deposit is refused.
    pub fn deposit(&self, minor: i64) -> Result<Entry, DepositRefused> {
        if minor <= 0 {
            return Err(DepositRefused::NotPositive);
        }
        let room = envelope::INTEGER_MAX - self.deposited.minor;
        if minor > room {
            return Err(DepositRefused::TooLarge);
        }
        let mut amount = self.balance;
        amount.minor = minor;
        Ok(Entry::Deposited { amount })
    }
}

impl Charge {
    /// The entry that gives this charge back.
    #[must_use]
    pub fn refund(&self, order_id: Uuid, refund_id: Uuid) -> Entry {
        let Self { payment_id, bill: Bill { amount, .. } } = *self;
        Entry::Refunded { order_id, payment_id, refund_id, amount }
    }
}

impl Entry {
    /// The word for it, in JSON and in the database.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Opened { .. } => "opened",
            Self::Deposited { .. } => "deposited",
            Self::Charged { .. } => "charged",
            Self::Refunded { .. } => "refunded",
        }
    }

    /// By how many minor units the entry changes the balance. All entries of an account add up to its balance.
    #[must_use]
    pub fn change(&self) -> i64 {
        match self {
            Self::Opened { .. } => 0,
            Self::Deposited { amount } | Self::Refunded { amount, .. } => amount.minor,
            Self::Charged { amount, .. } => -amount.minor,
        }
    }
}

/// The range of an amount is symmetric, so this cannot overflow.
fn negated(amount: Money) -> Money {
    let mut negated = amount;
    negated.minor = -amount.minor;
    negated
}

#[cfg(test)]
mod tests;
