//! Customers and goods of one run, made for it: whatever else the shop does, their orders end as meant.

use anyhow::Context;
use uuid::Uuid;

use super::mix::Kind;
use crate::clock;
use crate::dev::demo_data::CURRENCY;
use crate::shop::{NewLine, NewOrder, Shop};

/// Minor units for one piece.
const PRICE: i64 = 1_999;

/// What there is.
#[derive(Debug, Clone)]
pub(super) struct Goods {
    rich: Vec<Uuid>,
    poor: Uuid,
    plenty: Vec<String>,
    sold_out: String,
}

impl Goods {
    /// Opens accounts and fills shelves, enough for so many orders.
    pub(super) async fn make(shop: &Shop, customers: u32, orders: u64) -> anyhow::Result<Self> {
        let run = clock::draw_id();
        let enough = i64::try_from(orders).context("too many orders")?;
        let goods = Self {
            rich: (0..customers).map(|_| clock::draw_id()).collect(),
            poor: clock::draw_id(),
            plenty: (0..customers).map(|number| format!("load-{run}-{number}")).collect(),
            sold_out: format!("load-{run}-sold-out"),
        };
        for customer in goods.rich.iter().chain([&goods.poor]) {
            shop.open_account(*customer, CURRENCY, &format!("load-open-{customer}")).await?;
        }
        for customer in &goods.rich {
            let amount = enough.checked_mul(PRICE).context("too many orders")?;
            shop.deposit(*customer, amount, &format!("load-deposit-{customer}")).await?;
        }
        for sku in &goods.plenty {
            shop.set_stock(sku, enough, &format!("load-stock-{sku}")).await?;
        }
        shop.set_stock(&goods.sold_out, 0, &format!("load-stock-{}", goods.sold_out)).await?;
        Ok(goods)
    }

    /// The order number `number`, to end as `kind`.
    pub(super) fn order(&self, number: u64, kind: Kind) -> NewOrder {
        let at = usize::try_from(number).unwrap_or_default();
        let customer = if kind == Kind::Declined { self.poor } else { self.rich[at % self.rich.len()] };
        let sku = if kind == Kind::OutOfStock { &self.sold_out } else { &self.plenty[at % self.plenty.len()] };
        NewOrder {
            customer_id: customer,
            currency: CURRENCY.to_owned(),
            lines: vec![NewLine { sku: sku.clone(), quantity: 1, unit_price: PRICE }],
        }
    }
}
