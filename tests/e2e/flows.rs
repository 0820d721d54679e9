//! The ways of an order through the shop, and what is said on each.

use acceptance::shop::{End, Shop};
use anyhow::{Result, ensure};
use uuid::Uuid;

use crate::in_shared_shop;

/// What was said about an order, in stream order, without the versions.
pub(crate) async fn story(shop: &Shop, order_id: Uuid) -> Result<Vec<String>> {
    let evidence = shop.evidence().await?;
    let of_order = evidence.stream.iter().filter(|stored| stored.flow() == Some(order_id));
    Ok(of_order.map(|stored| stored.kind().trim_end_matches(".v1").to_owned()).collect())
}

#[test]
fn an_order_that_is_paid_and_reserved_is_confirmed() -> Result<()> {
    in_shared_shop(async |shop| {
        let customer = shop.customer("EUR", 10_000).await?;
        let (mug, pot) = (shop.stocked(5).await?, shop.stocked(1).await?);
        let order = shop.place(customer, "EUR", &[(&mug, 2, 1_999), (&pot, 1, 4_000)]).await?;
        shop.ends(order, End::Confirmed).await?;
        let told = [
            "orders.order_created",
            "payments.payment_processed",
            "inventory.inventory_reserved",
            "orders.order_confirmed",
        ];
        ensure!(story(shop, order).await? == told);
        ensure!(shop.balance(customer).await? == 10_000 - 2 * 1_999 - 4_000);
        let answer = shop.cancel(order).await?;
        ensure!(answer.status == 409, "a confirmed order was cancelled: {}", answer.text);
        Ok(())
    })
}

#[test]
fn an_order_that_cannot_be_paid_is_cancelled() -> Result<()> {
    in_shared_shop(async |shop| {
        let mug = shop.stocked(5).await?;
        let poor = shop.customer("EUR", 1_998).await?;
        let foreigner = shop.customer("USD", 10_000).await?;
        for (customer, why) in
            [(poor, "insufficient_funds"), (shop.stranger(), "unknown_account"), (foreigner, "currency_mismatch")]
        {
            let order = shop.place(customer, "EUR", &[(&mug, 1, 1_999)]).await?;
            shop.ends(order, End::Cancelled("payment_declined")).await?;
            let told = ["orders.order_created", "payments.payment_declined", "orders.order_cancelled"];
            ensure!(story(shop, order).await? == told, "{why}");
            let stream = shop.evidence().await?.stream;
            let declined = stream
                .iter()
                .find(|stored| stored.flow() == Some(order) && stored.kind() == "payments.payment_declined.v1");
            let reason = declined.map(|stored| stored.json()["reason"].clone());
            ensure!(reason == Some(why.into()), "expected {why}, was {reason:?}");
        }
        ensure!(shop.balance(poor).await? == 1_998 && shop.balance(foreigner).await? == 10_000);
        Ok(())
    })
}

#[test]
fn an_order_that_is_out_of_stock_is_refunded_and_cancelled() -> Result<()> {
    in_shared_shop(async |shop| {
        let customer = shop.customer("EUR", 10_000).await?;
        let (few, none) = (shop.stocked(2).await?, shop.stocked(0).await?);
        // Too many of the last; one line of two is missing; nobody has ever heard of it.
        let baskets: [&[(&str, i64, i64)]; 3] =
            [&[(&few, 3, 100)], &[(&few, 1, 100), (&none, 1, 100)], &[("never-kept", 1, 100)]];
        for lines in baskets {
            let order = shop.place(customer, "EUR", lines).await?;
            shop.ends(order, End::Cancelled("out_of_stock")).await?;
            let told = [
                "orders.order_created",
                "payments.payment_processed",
                "inventory.inventory_failed",
                "payments.refund_issued",
                "orders.order_cancelled",
            ];
            ensure!(story(shop, order).await? == told, "{lines:?}");
        }
        ensure!(shop.balance(customer).await? == 10_000);
        Ok(())
    })
}
