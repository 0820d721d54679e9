//! The stock of one SKU.

use events::Sku;

/// Most pieces on hand.
pub const ON_HAND_MAX: i64 = 1_000_000_000;

/// How much there is of one SKU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stock {
    /// What.
    pub sku: Sku,
    /// Pieces in the house, the reserved ones included.
    pub on_hand: i64,
    /// Pieces that are set aside for orders; 0 to `on_hand`.
    pub reserved: i64,
    /// Number of changes, the first count included.
    pub version: i64,
}

/// Why a count or a restock is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StockRefused {
    /// A count below zero or above the bound.
    #[error("must be 0 to {ON_HAND_MAX}")]
    Count,
    /// A restock of nothing, or one that would bring the stock above the bound.
    #[error("must be at least 1, and the stock at most {ON_HAND_MAX} afterwards")]
    Quantity,
    /// Fewer pieces than are set aside already.
    #[error("{reserved} pieces are reserved, so at least as many must be on hand")]
    BelowReserved {
        /// How many are set aside.
        reserved: i64,
    },
}

impl Stock {
    /// Pieces that can still be promised.
    #[must_use]
    pub fn available(&self) -> i64 {
        self.on_hand - self.reserved
    }

    /// The stock after a count.
    ///
    /// # Errors
    /// Why the count is refused.
    pub fn counted(&self, on_hand: i64) -> Result<Self, StockRefused> {
        if !(0..=ON_HAND_MAX).contains(&on_hand) {
            return Err(StockRefused::Count);
        }
        if on_hand < self.reserved {
            return Err(StockRefused::BelowReserved { reserved: self.reserved });
        }
        Ok(Self { on_hand, version: self.version + 1, ..self.clone() })
    }

    /// The stock after `quantity` more pieces came in.
    ///
    /// # Errors
    /// Why the restock is refused.
    pub fn restocked(&self, quantity: i64) -> Result<Self, StockRefused> {
        let room = ON_HAND_MAX - self.on_hand;
        if !(1..=room).contains(&quantity) {
            return Err(StockRefused::Quantity);
        }
        Ok(Self { on_hand: self.on_hand + quantity, version: self.version + 1, ..self.clone() })
    }

    /// The stock of a SKU that was not kept before its first count.
    #[must_use]
    pub fn unknown(sku: Sku) -> Self {
        Self { sku, on_hand: 0, reserved: 0, version: 0 }
    }
}

#[cfg(test)]
mod tests;
