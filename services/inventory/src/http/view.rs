//! Stock as HTTP shows it.

use events::Sku;
use serde::Serialize;

use crate::domain::Stock;

/// The representation of [`Stock`].
#[derive(Debug, Serialize)]
pub(super) struct StockView<'a> {
    pub(super) sku: &'a Sku,
    on_hand: i64,
    reserved: i64,
    available: i64,
    version: i64,
}

impl<'a> From<&'a Stock> for StockView<'a> {
    fn from(stock: &'a Stock) -> Self {
        Self {
            sku: &stock.sku,
            on_hand: stock.on_hand,
            reserved: stock.reserved,
            available: stock.available(),
            version: stock.version,
        }
    }
}
