//! `POST /stock/{sku}/restocks`.

use events::Sku;
use mesh::Tx;
use mesh::http::{FieldError, Operation, Problem, Reply};
use serde::Deserialize;

use super::read::no_such_sku;
use super::view::StockView;
use crate::store::stock;

/// Adds pieces to the stock of a SKU.
#[derive(Debug)]
pub struct Restock;

/// What came in.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    quantity: i64,
}

impl Operation for Restock {
    const NAME: &'static str = "restock";
    type Path = Sku;
    type Body = Delivery;

    async fn execute(&self, tx: &mut Tx, sku: Sku, delivery: Delivery) -> Result<Reply, Problem> {
        let stock = stock::lock(tx, &sku).await?.ok_or_else(|| no_such_sku(&sku))?;
        let restocked = stock
            .restocked(delivery.quantity)
            .map_err(|refused| Problem::invalid(vec![FieldError::new("quantity", refused.to_string())]))?;
        stock::update(tx, &restocked).await?;
        Ok(Reply::ok(&StockView::from(&restocked)))
    }
}
