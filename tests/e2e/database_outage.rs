//! The database of a service goes away under load and comes back: the service waits for it, and nobody has to touch it.

use acceptance::shop::{Service, Workload};
use anyhow::{Context, Result, ensure};
use testkit::Postgres;

use crate::{run, shop};

/// An orderly restart, then a crash with recovery.
async fn lose(postgres: &Postgres) -> Result<()> {
    postgres.restart().await?;
    postgres.kill9().await;
    Ok(postgres.restart().await?)
}

#[test]
fn a_database_that_restarts_or_crashes_under_load_loses_nothing_and_needs_no_restart_of_its_service() -> Result<()> {
    run(async {
        let shop = shop("database-outage").own_postgres().start().await?;
        let workload = Workload::prepare(&shop).await?;
        let pids = shop.pids().await?;
        let outages = async {
            for service in Service::ALL {
                lose(shop.servers().postgres(service)?).await.with_context(|| format!("the database of {service}"))?;
                // The next one goes when this service has noticed that its own is back.
                shop.ready().await?;
            }
            Ok(())
        };
        shop.under_load(&workload, outages).await?;
        ensure!(shop.pids().await? == pids, "a service was restarted");
        shop.finish().await
    })
}
