//! SIGTERM under load: a deployment is not an incident.

use acceptance::shop::{Replica, Service, Workload};
use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;

use crate::{run, shop};

/// Asks one process to finish; it must do so by itself, in its drain time.
async fn replace(replica: &Replica) -> Result<()> {
    let status = replica.term().await?;
    ensure!(status.success(), "{} ended with {status}: {}", replica.name(), replica.log_tail(20));
    replica.ready().await.with_context(|| format!("after {} was asked to finish", replica.name()))
}

#[test]
fn every_service_finishes_under_load_and_loses_and_repeats_nothing() -> Result<()> {
    run(async {
        let shop = shop("terminations").start().await?;
        let workload = Workload::prepare(&shop).await?;
        shop.under_load(&workload, async { try_join_all(shop.all_replicas().map(replace)).await.map(drop) }).await?;
        shop.finish().await
    })
}

#[test]
fn a_rolling_restart_of_two_replicas_loses_and_repeats_nothing() -> Result<()> {
    run(async {
        let shop = shop("rolling").replicas(2).start().await?;
        let workload = Workload::prepare(&shop).await?;
        let rolling = async {
            for replica in Service::ALL.into_iter().flat_map(|service| shop.replicas(service)) {
                replace(replica).await?;
            }
            Ok(())
        };
        shop.under_load(&workload, rolling).await?;
        shop.finish().await
    })
}
