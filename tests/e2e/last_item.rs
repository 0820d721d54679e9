//! Twelve customers and one mug.

use acceptance::shop::End;
use anyhow::{Result, ensure};
use futures_util::future::try_join_all;

use crate::in_shared_shop;

const BUYERS: usize = 12;

#[test]
fn the_last_item_is_sold_once_and_everybody_else_is_refunded() -> Result<()> {
    in_shared_shop(async |shop| {
        let mug = shop.stocked(1).await?;
        let mut customers = Vec::new();
        for _ in 0..BUYERS {
            customers.push(shop.customer("EUR", 5_000).await?);
        }
        let line = [(mug.as_str(), 1, 1_999)];
        let orders = try_join_all(customers.iter().map(|customer| shop.place(*customer, "EUR", &line))).await?;
        shop.quiet().await?;
        let mut confirmed = 0;
        for (customer, order) in customers.iter().zip(&orders) {
            let is_confirmed = shop.order(*order).await?["status"] == "confirmed";
            let (end, left) =
                if is_confirmed { (End::Confirmed, 5_000 - 1_999) } else { (End::Cancelled("out_of_stock"), 5_000) };
            shop.ends(*order, end).await?;
            ensure!(shop.balance(*customer).await? == left, "order {order} ended {end}");
            confirmed += usize::from(is_confirmed);
        }
        ensure!(confirmed == 1, "{confirmed} of {BUYERS} got the one mug");
        Ok(())
    })
}
