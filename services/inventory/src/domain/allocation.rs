//! Whether the stock can serve a demand: every line, or none.

use std::collections::BTreeMap;

use events::{FailureReason, Shortage, Sku};

use super::{Demand, Stock};

/// Why nothing is set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// `unknown_sku` when a SKU is not kept at all, `out_of_stock` when there is too little.
    pub reason: FailureReason,
    /// Every line that could not be served, in SKU order.
    pub shortages: Vec<Shortage>,
}

/// Checks every line against `stock`, which holds what is kept of the demanded SKUs.
///
/// # Errors
/// Everything that is missing.
pub fn allocate(demand: &Demand, stock: &[Stock]) -> Result<(), Refusal> {
    let available: BTreeMap<&Sku, i64> = stock.iter().map(|stock| (&stock.sku, stock.available())).collect();
    let mut reason = FailureReason::OutOfStock;
    let mut shortages = Vec::new();
    for line in demand.lines() {
        let available = available.get(&line.sku).copied();
        if available.is_none() {
            reason = FailureReason::UnknownSku;
        }
        if available.unwrap_or(0) < i64::from(line.quantity) {
            shortages.push(Shortage {
                sku: line.sku.clone(),
                requested: line.quantity,
                // Stock is bounded far below the range of the field.
                available: u32::try_from(available.unwrap_or(0)).unwrap_or(0),
            });
        }
    }
    if shortages.is_empty() { Ok(()) } else { Err(Refusal { reason, shortages }) }
}

#[cfg(test)]
mod tests;
