//! NATS is away for a minute: orders are taken all the same, and nobody has to touch a service afterwards.

use std::time::Duration;

use acceptance::shop::{End, Service, Shop, order_request};
use anyhow::{Context, Result, ensure};
use testkit::wait;
use tokio::time::{Instant, MissedTickBehavior, interval};
use uuid::Uuid;

use crate::{run, shop};

/// How long the broker is away.
const OUTAGE: Duration = Duration::from_secs(60);
/// An order every so often meanwhile.
const PACE: Duration = Duration::from_millis(200);
/// How long after the return of the broker every fact that waited may still be unpublished.
const CATCH_UP: Duration = Duration::from_secs(2);

#[test]
fn a_minute_without_the_broker_costs_nothing_but_the_minute() -> Result<()> {
    run(async {
        let shop = shop("broker-outage").start().await?;
        let customer = shop.customer("EUR", 900_000_000).await?;
        let mug = shop.stocked(900_000_000).await?;
        let before = shop.place(customer, "EUR", &[(&mug, 1, 1_999)]).await?;
        shop.ends(before, End::Confirmed).await?;
        shop.quiet().await?;
        let pids = shop.pids().await?;

        shop.nats().kill9().await;
        let orders = order_for(&shop, OUTAGE, customer, &mug).await?;
        ensure!(orders.len() > 100, "only {} orders in a minute", orders.len());
        let waiting = shop.servers().unsent(Service::Orders).await?;
        ensure!(waiting.len() == orders.len(), "{} facts wait for {} orders", waiting.len(), orders.len());
        shop.nats().restart().await?;
        wait::until("the facts that waited to be published", CATCH_UP, || async {
            let unsent = shop.servers().unsent(Service::Orders).await.map_err(|error| format!("{error:#}"))?;
            let left = unsent.intersection(&waiting).count();
            if left == 0 { Ok(()) } else { Err(format!("{left} wait")) }
        })
        .await?;

        for order in orders {
            shop.ends(order, End::Confirmed).await?;
        }
        ensure!(shop.pids().await? == pids, "a service was restarted");
        shop.finish().await
    })
}

/// Places an order at every tick; each must be taken at the first try.
async fn order_for(shop: &Shop, duration: Duration, customer: Uuid, sku: &str) -> Result<Vec<Uuid>> {
    let end = Instant::now() + duration;
    let mut ticks = interval(PACE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut orders = Vec::new();
    while ticks.tick().await < end {
        let request = order_request(customer, "EUR", &[(sku, 1, 1_999)]).key(shop.next_key());
        let reply = shop.send(&request).await.context("an order while the broker is away")?;
        orders.push(shop.accepted(&reply)?);
    }
    Ok(orders)
}
