//! Many orders of every kind, each with the end that it must come to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

use super::{End, Shop};

const CURRENCY: &str = "EUR";
const PRICE: i64 = 1_999;
/// Enough for every test.
const PLENTY: i64 = 900_000_000;
/// Customers that share the load: fewer than orders at once, so that accounts are contended.
const CUSTOMERS: usize = 6;

/// The four ways of an order through the shop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Paid and reserved.
    Confirmed,
    /// The customer cannot pay.
    Declined,
    /// Paid, out of stock, refunded.
    OutOfStock,
    /// Cancelled by the customer right after it was placed.
    Cancelled,
}

impl Flow {
    /// All of them.
    pub const ALL: [Flow; 4] = [Flow::Confirmed, Flow::Declined, Flow::OutOfStock, Flow::Cancelled];
}

/// An order and how it must end.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    /// The order.
    pub order_id: Uuid,
    /// Its end.
    pub end: End,
}

/// Customers and shelves for orders of every kind.
#[derive(Debug, Clone)]
pub struct Workload {
    rich: Vec<Uuid>,
    poor: Uuid,
    plenty: String,
    empty: String,
}

impl Workload {
    /// Opens accounts and fills shelves.
    ///
    /// # Errors
    /// When a service refuses.
    pub async fn prepare(shop: &Shop) -> Result<Workload> {
        let mut rich = Vec::new();
        for _ in 0..CUSTOMERS {
            rich.push(shop.customer(CURRENCY, PLENTY).await?);
        }
        let poor = shop.customer(CURRENCY, PRICE - 1).await?;
        Ok(Workload { rich, poor, plenty: shop.stocked(PLENTY).await?, empty: shop.stocked(0).await? })
    }

    /// Sends one order on its way.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn place(&self, shop: &Shop, flow: Flow) -> Result<Placed> {
        let turn = usize::try_from(shop.next_number()).unwrap_or_default() % self.rich.len();
        let (customer, sku, end) = match flow {
            Flow::Confirmed | Flow::Cancelled => (self.rich[turn], &self.plenty, End::Confirmed),
            Flow::Declined => (self.poor, &self.plenty, End::Cancelled("payment_declined")),
            Flow::OutOfStock => (self.rich[turn], &self.empty, End::Cancelled("out_of_stock")),
        };
        let order_id = shop.place(customer, CURRENCY, &[(sku, 1, PRICE)]).await?;
        if flow != Flow::Cancelled {
            return Ok(Placed { order_id, end });
        }
        // The cancellation races with the confirmation, and the answer says who has won.
        let answer = shop.cancel(order_id).await?;
        match answer.status {
            200 => Ok(Placed { order_id, end: End::Cancelled("customer") }),
            409 => Ok(Placed { order_id, end }),
            status => bail!("a cancellation was answered {status}: {}", answer.text),
        }
    }

    /// Pays a little into one of the accounts.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn pay_in(&self, shop: &Shop) -> Result<()> {
        shop.pay_in(self.rich[0], 1).await
    }

    /// Adds a piece to the full shelf.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn restock(&self, shop: &Shop) -> Result<()> {
        shop.restock(&self.plenty, 1).await
    }

    /// Sends one order of each flow on its way, all at once.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn place_each(&self, shop: &Shop) -> Result<Vec<Placed>> {
        self.place_many(shop, Flow::ALL.len(), Flow::ALL.len()).await
    }

    /// Sends `count` orders on their way, the flows in turn, `at_once` of them at the same time.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn place_many(&self, shop: &Shop, count: usize, at_once: usize) -> Result<Vec<Placed>> {
        let flows = Flow::ALL.into_iter().cycle().take(count);
        stream::iter(flows).map(|flow| self.place(shop, flow)).buffer_unordered(at_once).try_collect().await
    }
}

/// Orders that are placed under load at least.
const UNDER_LOAD_MIN: usize = 200;
/// Orders that are placed between two looks at whether the faults are over.
const WAVE: usize = 20;
/// A load that leaves room for recovery on two cores shared with another test.
const WAVE_EVERY: Duration = Duration::from_millis(400);
/// Clients at the same time.
const CLIENTS: usize = 6;

impl Shop {
    /// Places orders of every kind for as long as `faults` go on, and 200 at least; then waits until they have all ended as
    /// they must.
    ///
    /// # Errors
    /// When a service refuses, a fault fails, or an order ends otherwise.
    pub async fn under_load(&self, workload: &Workload, faults: impl Future<Output = Result<()>>) -> Result<()> {
        let over = AtomicBool::new(false);
        let load = async {
            let mut placed = Vec::new();
            let mut waves = interval(WAVE_EVERY);
            waves.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while placed.len() < UNDER_LOAD_MIN || !over.load(Ordering::Relaxed) {
                waves.tick().await;
                placed.extend(workload.place_many(self, WAVE, CLIENTS).await?);
            }
            Ok(placed)
        };
        let faults = async {
            let done = faults.await;
            over.store(true, Ordering::Relaxed);
            done
        };
        let (placed, ()) = tokio::try_join!(load, faults)?;
        self.end(&placed).await
    }

    /// Waits until these orders have ended, and holds them to how they must.
    ///
    /// # Errors
    /// When one ends otherwise, or not in time.
    pub async fn end(&self, placed: &[Placed]) -> Result<()> {
        for Placed { order_id, end } in placed {
            self.ends(*order_id, *end).await?;
        }
        Ok(())
    }
}
