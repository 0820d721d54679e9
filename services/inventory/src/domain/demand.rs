//! What one order asks of the stock.

use std::collections::BTreeMap;

use events::{OrderLine, Sku, StockLine};
use serde::{Deserialize, Serialize};

/// The lines of one order: one per SKU, in SKU order. Whoever locks stock does it in this order, so that two orders never
/// wait for each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Demand(Vec<Line>);

/// A quantity of one SKU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// What.
    pub sku: Sku,
    /// How many pieces; above zero.
    pub quantity: u32,
}

/// Lines that no stock can serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DemandError {
    /// Nothing is ordered.
    #[error("an order without lines")]
    Empty,
    /// No piece is ordered.
    #[error("a line of zero pieces of {0}")]
    NoPieces(Sku),
    /// More pieces than a quantity can say.
    #[error("more than 4294967295 pieces of {0}")]
    TooMany(Sku),
}

impl Demand {
    /// The demand of an order. Several lines of one SKU are one demand for their sum.
    ///
    /// # Errors
    /// When the lines are none that an order may have.
    pub fn of(lines: &[OrderLine]) -> Result<Self, DemandError> {
        let mut sums: BTreeMap<&Sku, u32> = BTreeMap::new();
        for OrderLine { sku, quantity, .. } in lines {
            if *quantity == 0 {
                return Err(DemandError::NoPieces(sku.clone()));
            }
            let sum = sums.entry(sku).or_default();
            *sum = sum.checked_add(*quantity).ok_or_else(|| DemandError::TooMany(sku.clone()))?;
        }
        if sums.is_empty() {
            return Err(DemandError::Empty);
        }
        Ok(Self(sums.into_iter().map(|(sku, quantity)| Line { sku: sku.clone(), quantity }).collect()))
    }

    /// The lines, in SKU order.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.0
    }

    /// The lines as facts say them.
    #[must_use]
    pub fn to_fact(&self) -> Vec<StockLine> {
        self.0.iter().map(|line| StockLine { sku: line.sku.clone(), quantity: line.quantity }).collect()
    }
}

#[cfg(test)]
mod tests;
