//! Orders that are cancelled while they are on their way: wherever the cancellation meets them, everything is undone.

use acceptance::shop::{End, Service, Shop};
use anyhow::{Result, ensure};
use uuid::Uuid;

use crate::flows::story;
use crate::in_shared_shop;

const PAID_IN: i64 = 10_000;

/// Orders one mug; who, what.
async fn order_a_mug(shop: &Shop) -> Result<(Uuid, Uuid)> {
    let customer = shop.customer("EUR", PAID_IN).await?;
    let mug = shop.stocked(1).await?;
    Ok((customer, shop.place(customer, "EUR", &[(&mug, 1, 1_999)]).await?))
}

async fn cancel(shop: &Shop, order: Uuid) -> Result<()> {
    let answer = shop.cancel(order).await?;
    ensure!(answer.status == 200 && answer.body["cancel_reason"] == "customer", "{}", answer.text);
    shop.said(order, "orders.order_cancelled.v1").await
}

async fn told(shop: &Shop, order: Uuid) -> Result<Vec<String>> {
    let mut told = story(shop, order).await?;
    told.sort_unstable();
    Ok(told)
}

#[test]
fn an_order_cancelled_before_it_is_paid_costs_nothing() -> Result<()> {
    in_shared_shop(async |shop| {
        let payments = shop.replica(Service::Payments);
        payments.freeze().await?;
        // An account must exist before the service stands still, so this one orders on credit that it does not have.
        let order = shop.place(shop.stranger(), "EUR", &[("never-kept", 1, 1_999)]).await?;
        cancel(shop, order).await?;
        payments.thaw().await?;
        shop.ends(order, End::Cancelled("customer")).await?;
        let expected = ["orders.order_cancelled", "orders.order_created", "payments.payment_declined"];
        ensure!(told(shop, order).await? == expected);
        Ok(())
    })
}

#[test]
fn an_order_cancelled_while_its_payment_is_on_the_way_is_refunded() -> Result<()> {
    in_shared_shop(async |shop| {
        let customer = shop.customer("EUR", PAID_IN).await?;
        let mug = shop.stocked(1).await?;
        let payments = shop.replica(Service::Payments);
        payments.freeze().await?;
        let order = shop.place(customer, "EUR", &[(&mug, 1, 1_999)]).await?;
        cancel(shop, order).await?;
        payments.thaw().await?;
        // Payments hears of the order before it hears of the cancellation; inventory answers the payment of an order that
        // it knows to be cancelled.
        let expected = [
            "inventory.inventory_failed",
            "orders.order_cancelled",
            "orders.order_created",
            "payments.payment_processed",
            "payments.refund_issued",
        ];
        ensure!(told(shop, order).await? == expected);
        shop.ends(order, End::Cancelled("customer")).await?;
        ensure!(shop.balance(customer).await? == PAID_IN);
        Ok(())
    })
}

#[test]
fn an_order_cancelled_between_payment_and_reservation_is_refunded_and_released() -> Result<()> {
    in_shared_shop(async |shop| {
        let customer = shop.customer("EUR", PAID_IN).await?;
        let mug = shop.stocked(1).await?;
        let inventory = shop.replica(Service::Inventory);
        inventory.freeze().await?;
        let order = shop.place(customer, "EUR", &[(&mug, 1, 1_999)]).await?;
        shop.said(order, "payments.payment_processed.v1").await?;
        cancel(shop, order).await?;
        shop.said(order, "payments.refund_issued.v1").await?;
        inventory.thaw().await?;
        // Inventory hears all three in the order of the stream, so it reserves and then releases.
        let expected = [
            "inventory.inventory_released",
            "inventory.inventory_reserved",
            "orders.order_cancelled",
            "orders.order_created",
            "payments.payment_processed",
            "payments.refund_issued",
        ];
        ensure!(told(shop, order).await? == expected);
        shop.ends(order, End::Cancelled("customer")).await?;
        ensure!(shop.balance(customer).await? == PAID_IN);
        Ok(())
    })
}

#[test]
fn a_second_cancellation_says_nothing_more() -> Result<()> {
    in_shared_shop(async |shop| {
        let inventory = shop.replica(Service::Inventory);
        let (_, order) = order_a_mug(shop).await?;
        inventory.freeze().await?;
        let first = shop.cancel(order).await?;
        let second = shop.cancel(order).await?;
        inventory.thaw().await?;
        // Whether the first was in time is not the point here; that the second changes nothing is.
        ensure!(first.status == second.status && first.body["version"] == second.body["version"], "{}", second.text);
        Ok(())
    })
}

#[test]
fn an_order_past_its_deadline_is_cancelled_and_refunded() -> Result<()> {
    in_shared_shop(async |shop| {
        let customer = shop.customer("EUR", PAID_IN).await?;
        let mug = shop.stocked(1).await?;
        let (orders, inventory) = (shop.replica(Service::Orders), shop.replica(Service::Inventory));
        orders.restart_with([("ORDERS_FLOW_DEADLINE_SECONDS", "2".to_owned())]).await?;
        inventory.freeze().await?;
        let order = shop.place(customer, "EUR", &[(&mug, 1, 1_999)]).await?;
        shop.said(order, "orders.order_cancelled.v1").await?;
        inventory.thaw().await?;
        shop.ends(order, End::Cancelled("deadline")).await?;
        let expected = [
            "inventory.inventory_released",
            "inventory.inventory_reserved",
            "orders.order_cancelled",
            "orders.order_created",
            "payments.payment_processed",
            "payments.refund_issued",
        ];
        ensure!(told(shop, order).await? == expected);
        ensure!(shop.balance(customer).await? == PAID_IN);
        orders.restart_with([]).await
    })
}
