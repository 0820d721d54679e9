//! `Idempotency-Key`: however often a request is sent, by whomever, whatever dies in between, it is done once.

use acceptance::shop::{End, Ended, Method, Reply, Request, Service, Shop, order_request};
use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::in_shared_shop;

const AT_ONCE: usize = 10;
const REPLAYED: &str = "idempotency-replayed";

async fn orders_of(shop: &Shop, customer: Uuid) -> Result<Vec<Value>> {
    let list = Request::new(Service::Orders, Method::GET, format!("/orders?customer_id={customer}"));
    let page = shop.settle(&list).await?.success()?;
    Ok(page["items"].as_array().cloned().unwrap_or_default())
}

/// The one reply that is not a replay; every other one is its replay, or was told to come back.
fn first_of(replies: &[Reply]) -> Result<&Reply> {
    let done: Vec<&Reply> = replies.iter().filter(|reply| reply.is_success()).collect();
    let first: Vec<&&Reply> = done.iter().filter(|reply| reply.header(REPLAYED).is_none()).collect();
    ensure!(first.len() == 1, "{} of {} requests did the work", first.len(), replies.len());
    for reply in replies {
        let replay = reply.is_success() && reply.text == first[0].text;
        let later = reply.status == 409 && reply.header("retry-after").is_some();
        ensure!(replay || later, "answered {}: {}", reply.status, reply.text);
    }
    Ok(first[0])
}

#[test]
fn ten_equal_orders_at_once_are_one_order() -> Result<()> {
    in_shared_shop(async |shop| {
        let customer = shop.customer("EUR", 10_000).await?;
        let mug = shop.stocked(100).await?;
        let request = order_request(customer, "EUR", &[(&mug, 1, 1_999)]).key(shop.next_key());
        let replies = try_join_all((0..AT_ONCE).map(|_| shop.send(&request))).await?;
        let first = first_of(&replies)?;
        let order = shop.accepted(first)?;

        let again = shop.settle(&request).await?;
        ensure!(again.status == 201 && again.header(REPLAYED) == Some("true"), "{}", again.text);
        ensure!(again.text == first.text && again.header("location") == first.header("location"));
        ensure!(orders_of(shop, customer).await?.len() == 1);
        shop.ends(order, End::Confirmed).await?;
        ensure!(shop.balance(customer).await? == 10_000 - 1_999);
        Ok(())
    })
}

#[test]
fn ten_equal_deposits_at_once_are_one_deposit() -> Result<()> {
    in_shared_shop(async |shop| {
        let customer = shop.customer("EUR", 0).await?;
        let path = format!("/accounts/{customer}/deposits");
        let request = Request::new(Service::Payments, Method::POST, path).key(shop.next_key());
        let request = request.json(&json!({ "amount": 500 }));
        let replies = try_join_all((0..AT_ONCE).map(|_| shop.send(&request))).await?;
        first_of(&replies)?;
        *shop.record().deposits.entry(customer).or_default() += 500;
        ensure!(shop.balance(customer).await? == 500);
        prove_life(shop).await
    })
}

#[test]
fn a_key_belongs_to_its_request() -> Result<()> {
    in_shared_shop(async |shop| {
        let customer = shop.customer("EUR", 10_000).await?;
        let mug = shop.stocked(100).await?;
        let key = shop.next_key();
        let first = shop.settle(&order_request(customer, "EUR", &[(&mug, 1, 1_999)]).key(&key)).await?;
        let order = shop.accepted(&first)?;
        let other = shop.settle(&order_request(customer, "EUR", &[(&mug, 2, 1_999)]).key(&key)).await?;
        ensure!(other.status == 422, "another body under the same key was answered {}: {}", other.status, other.text);
        ensure!(other.header("content-type") == Some("application/problem+json"));
        ensure!(orders_of(shop, customer).await?.len() == 1);
        shop.ends(order, End::Confirmed).await
    })
}

/// A process that dies after the commit has done the work; one that dies before it has not. The client sees no
/// difference, repeats the request, and has one order.
#[test]
fn a_crash_around_the_commit_leaves_one_order_for_one_key() -> Result<()> {
    in_shared_shop(async |shop| {
        for (point, replayed) in [("api.before_commit", None), ("api.after_commit_before_reply", Some("true"))] {
            let customer = shop.customer("EUR", 10_000).await?;
            let mug = shop.stocked(100).await?;
            let orders = shop.replica(Service::Orders);
            orders.restart_with([("MESH_FAILPOINT", format!("{point}=1:kill"))]).await?;
            let request = order_request(customer, "EUR", &[(&mug, 1, 1_999)]).key(shop.next_key());
            ensure!(shop.send(&request).await.is_err(), "{point}: the process should have died");
            let reply = shop.settle(&request).await?;
            ensure!(orders.ended().last().is_some_and(Ended::by_failpoint), "{point} was not hit");
            ensure!(reply.header(REPLAYED) == replayed, "{point}: {:?}", reply.headers);
            let order = shop.accepted(&reply).context(point)?;
            ensure!(orders_of(shop, customer).await?.len() == 1, "{point}");
            shop.ends(order, End::Confirmed).await?;
            ensure!(shop.balance(customer).await? == 10_000 - 1_999, "{point}");
        }
        Ok(())
    })
}

/// One order that goes well.
pub(crate) async fn prove_life(shop: &Shop) -> Result<()> {
    let customer = shop.customer("EUR", 10_000).await?;
    let mug = shop.stocked(1).await?;
    let order = shop.place(customer, "EUR", &[(&mug, 1, 1_999)]).await?;
    shop.ends(order, End::Confirmed).await
}
