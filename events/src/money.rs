//! Amounts of money: integers of minor units, never a fraction.

mod currency;

use envelope::INTEGER_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

pub use currency::Currency;

/// An amount: `minor` units of `currency`, each 10^-`scale` of a major unit.
///
/// The scale travels with the amount, because the table of exponents changes over the years: 1999 EUR cents of today stay
/// 19.99 EUR for whoever reads them later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Money {
    /// The amount in minor units: 1999 at scale 2 is 19.99. Within ±(2^53 - 1).
    #[schemars(range(min = -9_007_199_254_740_991_i64, max = 9_007_199_254_740_991_i64))]
    pub minor: i64,
    /// ISO 4217 code.
    pub currency: Currency,
    /// Decimal digits of the minor unit: 2 for EUR, 0 for JPY.
    #[schemars(range(min = 0, max = 9))]
    pub scale: u8,
}

/// Largest scale that is read: what ISO 4217 uses, and room.
const SCALE_MAX: u8 = 9;

/// Why an amount cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Not three capital letters.
    #[error("{0:?} is not a currency code: it must be three capital letters")]
    MalformedCurrency(String),
    /// Three capital letters that the table does not know.
    #[error("currency {0} is not known")]
    UnknownCurrency(Currency),
    /// Beyond ±(2^53 - 1) minor units.
    #[error("the amount is beyond {INTEGER_MAX} minor units")]
    OutOfRange,
    /// A scale above 9.
    #[error("scale {0} is above {SCALE_MAX}")]
    Scale(u8),
    /// Two amounts that cannot be added.
    #[error("cannot add {right} (scale {right_scale}) to {left} (scale {left_scale})")]
    Mismatch {
        /// Currency of the first amount.
        left: Currency,
        /// Scale of the first amount.
        left_scale: u8,
        /// Currency of the second amount.
        right: Currency,
        /// Scale of the second amount.
        right_scale: u8,
    },
}

impl Money {
    /// An amount in minor units of a known currency, with the scale of the table.
    ///
    /// # Errors
    /// When the currency is not in the table or the amount is beyond ±(2^53 - 1).
    pub fn new(minor: i64, currency: Currency) -> Result<Self, MoneyError> {
        let scale = currency.exponent().ok_or(MoneyError::UnknownCurrency(currency))?;
        Self::checked(i128::from(minor), currency, scale)
    }

    /// The sum, if both amounts are of one currency and scale and it stays in range.
    pub fn checked_add(self, other: Self) -> Result<Self, MoneyError> {
        if (self.currency, self.scale) != (other.currency, other.scale) {
            return Err(MoneyError::Mismatch {
                left: self.currency,
                left_scale: self.scale,
                right: other.currency,
                right_scale: other.scale,
            });
        }
        Self::checked(i128::from(self.minor) + i128::from(other.minor), self.currency, self.scale)
    }

    /// The amount `quantity` times, if it stays in range.
    pub fn checked_mul(self, quantity: u32) -> Result<Self, MoneyError> {
        Self::checked(i128::from(self.minor) * i128::from(quantity), self.currency, self.scale)
    }

    fn checked(minor: i128, currency: Currency, scale: u8) -> Result<Self, MoneyError> {
        if scale > SCALE_MAX {
            return Err(MoneyError::Scale(scale));
        }
        let in_range = i64::try_from(minor).ok().filter(|value| (-INTEGER_MAX..=INTEGER_MAX).contains(value));
        in_range.map(|minor| Self { minor, currency, scale }).ok_or(MoneyError::OutOfRange)
    }
}

/// The wire form before its ranges are checked. The currency may be one that the table does not know: a reader takes what
/// was true for the publisher.
#[derive(Deserialize)]
struct Unchecked {
    minor: i64,
    currency: Currency,
    scale: u8,
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Unchecked::deserialize(deserializer)?;
        Self::checked(i128::from(wire.minor), wire.currency, wire.scale).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
