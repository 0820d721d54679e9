//! The shop end to end: what its users are promised, with nothing broken and with everything broken in turn.
//!
//! Every test ends with the checker (`acceptance::checker`) over all that it left behind.

mod arrows;
mod bad_requests;
mod broker_outage;
mod cancellations;
mod database_outage;
mod duplicates;
mod flows;
mod idempotency;
mod kills;
mod last_item;
mod links;
mod pauses;
mod poison;
mod redrive;
mod terminations;
mod traces;

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acceptance::shop::{Bed, Shop, ShopBuilder};
use anyhow::{Context, Result};
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

/// No test may hang.
const TEST_LIMIT: Duration = Duration::from_secs(420);

/// One runtime for all tests: a shop that several of them use must not end with the first.
static RUNTIME: LazyLock<std::io::Result<Runtime>> = LazyLock::new(Runtime::new);
static SHARED: Mutex<Option<Shop>> = Mutex::const_new(None);
/// Numbers the shops that tests share, of which there is more than one only after a failure.
static SHARED_SHOPS: AtomicU64 = AtomicU64::new(1);

/// Runs a test to its end.
fn run(test: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = RUNTIME.as_ref().map_err(|error| anyhow::anyhow!("no runtime: {error}"))?;
    runtime.block_on(async { tokio::time::timeout(TEST_LIMIT, test).await.context("the test hangs")? })
}

/// A shop of the test's own.
fn shop(name: &str) -> ShopBuilder {
    let bed = Bed { program: env!("CARGO_BIN_EXE_shop-under-test"), directory: env!("CARGO_TARGET_TMPDIR") };
    Shop::builder(bed, name)
}

/// Runs a test in the shop that all tests share which leave it whole, one at a time; then checks every promise. A test
/// that fails takes the shop with it.
fn in_shared_shop(test: impl AsyncFnOnce(&Shop) -> Result<()>) -> Result<()> {
    run(async {
        let mut slot = SHARED.lock().await;
        let shop = match slot.take() {
            Some(shop) => shop,
            None => shop(&format!("shared-{}", SHARED_SHOPS.fetch_add(1, Ordering::Relaxed))).start().await?,
        };
        test(&shop).await?;
        // Not the end of the shop: if the next test fails, the logs are wanted.
        shop.check().await?;
        *slot = Some(shop);
        Ok(())
    })
}
