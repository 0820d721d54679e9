//! From what a customer sends to what an order may be.

use std::collections::HashSet;

use events::{Currency, Money, MoneyError, OrderLine, Sku};
use serde::Deserialize;
use uuid::Uuid;

/// Most lines of one order: with the longest SKUs its fact stays below the size limit of the contract.
pub const LINES_MAX: usize = 200;
/// Most pieces of one line.
pub const QUANTITY_MAX: u32 = 1_000_000;

/// What a customer asks for, not checked yet.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// Who orders.
    pub customer_id: Uuid,
    /// ISO 4217 code of every price.
    pub currency: String,
    /// What is ordered.
    pub lines: Vec<DraftLine>,
}

/// One position of a [`Draft`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DraftLine {
    /// What is ordered.
    pub sku: String,
    /// How many pieces.
    pub quantity: i64,
    /// Price of one piece in minor units.
    pub unit_price: i64,
}

/// What is wrong with one field of a [`Draft`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the field, e.g. `lines[2].quantity`.
    pub field: String,
    /// What it must be.
    pub detail: String,
}

/// An order that may be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Who orders and will be charged.
    pub customer_id: Uuid,
    /// The sum of quantity times unit price; above zero.
    pub total: Money,
    /// What is ordered, one line per SKU.
    pub lines: Vec<OrderLine>,
}

/// Lines that have no sum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TotalError {
    /// Nothing is ordered.
    #[error("an order without lines")]
    NoLines,
    /// Mixed currencies, or beyond the range of an amount.
    #[error(transparent)]
    Amount(#[from] MoneyError),
}

impl Placement {
    /// Checks a draft and prices it.
    ///
    /// # Errors
    /// Everything that is wrong with it, field by field.
    pub fn check(draft: &Draft) -> Result<Self, Vec<Violation>> {
        let mut violations = Vec::new();
        if draft.customer_id.is_nil() {
            violations.push(violation("customer_id", "must not be the nil UUID"));
        }
        if draft.lines.is_empty() || draft.lines.len() > LINES_MAX {
            violations.push(violation("lines", format!("must have 1 to {LINES_MAX} entries")));
        }
        let currency = Currency::parse(&draft.currency)
            .map_err(|error| violations.push(violation("currency", error.to_string())))
            .ok();
        let lines = check_lines(&draft.lines, currency, &mut violations);
        if !violations.is_empty() {
            return Err(violations);
        }
        let total = checked_total(&lines).map_err(|wrong| vec![wrong])?;
        Ok(Self { customer_id: draft.customer_id, total, lines })
    }
}

/// The lines that are right. Without a currency nothing can be priced, but the other fields are still checked.
fn check_lines(lines: &[DraftLine], currency: Option<Currency>, violations: &mut Vec<Violation>) -> Vec<OrderLine> {
    let mut seen = HashSet::new();
    let mut checked = Vec::with_capacity(lines.len().min(LINES_MAX));
    for (index, line) in lines.iter().enumerate().take(LINES_MAX) {
        let mut refuse =
            |field: &str, detail: String| violations.push(violation(format!("lines[{index}].{field}"), detail));
        let sku = Sku::parse(&line.sku).map_err(|error| refuse("sku", error.to_string())).ok();
        if !seen.insert(line.sku.as_str()) {
            refuse("sku", "is in an earlier line as well".to_owned());
        }
        let quantity = u32::try_from(line.quantity).ok().filter(|quantity| (1..=QUANTITY_MAX).contains(quantity));
        if quantity.is_none() {
            refuse("quantity", format!("must be 1 to {QUANTITY_MAX}"));
        }
        let unit_price = currency.and_then(|currency| Money::new(line.unit_price, currency).ok());
        if line.unit_price < 0 || (currency.is_some() && unit_price.is_none()) {
            refuse("unit_price", format!("must be 0 to {} minor units", envelope::INTEGER_MAX));
        }
        if let (Some(sku), Some(quantity), Some(unit_price)) = (sku, quantity, unit_price) {
            checked.push(OrderLine { sku, quantity, unit_price });
        }
    }
    checked
}

/// A single piece may be free, a whole order may not: there would be nothing to charge.
fn checked_total(lines: &[OrderLine]) -> Result<Money, Violation> {
    match total(lines) {
        Ok(total) if total.minor > 0 => Ok(total),
        _ => Err(violation("lines", format!("must add up to 1 to {} minor units", envelope::INTEGER_MAX))),
    }
}

/// The sum of quantity times unit price.
///
/// # Errors
/// When there are no lines, they are priced in several currencies, or the sum is beyond the range of an amount.
pub fn total(lines: &[OrderLine]) -> Result<Money, TotalError> {
    let price = |line: &OrderLine| line.unit_price.checked_mul(line.quantity);
    let (first, rest) = lines.split_first().ok_or(TotalError::NoLines)?;
    rest.iter().try_fold(price(first)?, |sum, line| Ok(sum.checked_add(price(line)?)?))
}

fn violation(field: impl Into<String>, detail: impl Into<String>) -> Violation {
    Violation { field: field.into(), detail: detail.into() }
}

#[cfg(test)]
mod tests;
