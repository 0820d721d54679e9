//! `order`: places one order.

use std::time::Duration;

use clap::Args;
use uuid::Uuid;

use crate::clock;
use crate::dev::demo_data;
use crate::outcome::Outcome;
use crate::output::{Format, say};
use crate::shop::{NewLine, NewOrder, Shop};
use crate::target::Selection;

/// What to order. The defaults are the customer and the goods of `dev`.
#[derive(Debug, Clone, Args)]
pub struct PlaceOrder {
    /// Who pays
    #[arg(long, value_name = "UUID", default_value_t = demo_data::RICH)]
    customer: Uuid,
    /// What
    #[arg(long, default_value = demo_data::PLENTY)]
    sku: String,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 1)]
    quantity: u32,
    /// For how much each, in minor units
    #[arg(long, value_name = "MINOR", default_value_t = 1999)]
    price: i64,
    /// ISO 4217
    #[arg(long, value_name = "CODE", default_value = demo_data::CURRENCY)]
    currency: String,
    /// Makes a repetition of the same command one order [default: a new key]
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Wait until the order is confirmed or cancelled; ends with 1 when it is not confirmed
    #[arg(long)]
    wait: bool,
    /// How long to wait, in seconds
    #[arg(long, value_name = "N", default_value_t = 60, requires = "wait")]
    timeout: u64,
    /// Where orders serves HTTP, when it is not a run of `dev`
    #[arg(long, env = "MESH_ORDERS_URL", value_name = "URL")]
    orders_url: Option<String>,
}

impl PlaceOrder {
    /// Places the order.
    ///
    /// # Errors
    /// When it is refused, or orders does not answer.
    pub async fn run(self, selection: &Selection, format: Format) -> anyhow::Result<Outcome> {
        let shop = match &self.orders_url {
            Some(url) => Shop::at(url)?,
            None => Shop::of(selection.resolve()?)?,
        };
        let key = self.idempotency_key.clone().unwrap_or_else(|| clock::draw_id().to_string());
        let order = shop.place(&self.order(), &key).await?;
        if !self.wait {
            format.print(&order)?;
            return Ok(Outcome::Yes);
        }
        let order = match shop.settled(order.order_id, Duration::from_secs(self.timeout)).await {
            Ok(order) => order,
            Err(error) => {
                say(format_args!("{error:#}"));
                order
            }
        };
        format.print(&order)?;
        Ok(Outcome::from_answer(order.status == "confirmed"))
    }

    fn order(&self) -> NewOrder {
        let line = NewLine { sku: self.sku.clone(), quantity: self.quantity, unit_price: self.price };
        NewOrder { customer_id: self.customer, currency: self.currency.clone(), lines: vec![line] }
    }
}
