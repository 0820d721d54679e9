//! `PUT /stock/{sku}`.

use events::Sku;
use mesh::Tx;
use mesh::http::{FieldError, Operation, Problem, Reply};
use serde::Deserialize;

use super::view::StockView;
use crate::domain::{Stock, StockRefused};
use crate::store::stock;

/// Sets how many pieces of a SKU are on hand. The first count makes the SKU known.
#[derive(Debug)]
pub struct CountStock;

/// What was counted.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    on_hand: i64,
}

impl Operation for CountStock {
    const NAME: &'static str = "count-stock";
    type Path = Sku;
    type Body = Count;

    async fn execute(&self, tx: &mut Tx, sku: Sku, count: Count) -> Result<Reply, Problem> {
        match stock::lock(tx, &sku).await? {
            Some(stock) => {
                let counted = stock.counted(count.on_hand).map_err(refused)?;
                stock::update(tx, &counted).await?;
                Ok(Reply::ok(&StockView::from(&counted)))
            }
            None => {
                let location = format!("/stock/{sku}");
                let counted = Stock::unknown(sku).counted(count.on_hand).map_err(refused)?;
                stock::insert(tx, &counted).await?;
                Ok(Reply::created(location, &StockView::from(&counted)))
            }
        }
    }
}

fn refused(refused: StockRefused) -> Problem {
    match refused {
        StockRefused::BelowReserved { .. } => Problem::conflict(format!("on_hand: {refused}")),
        StockRefused::Count | StockRefused::Quantity => {
            Problem::invalid(vec![FieldError::new("on_hand", refused.to_string())])
        }
    }
}
