//! A process that stands still, keeps its leases and its deliveries in hand, and one day goes on as if nothing had happened.

use std::time::Duration;

use acceptance::shop::{Service, Workload};
use anyhow::{Result, ensure};

use crate::{run, shop};

/// What a paused process had in hand is delivered to the other one after it.
const ACK_WAIT: Duration = Duration::from_secs(10);

#[test]
fn the_other_replica_takes_over_from_a_paused_one_which_does_no_harm_when_it_goes_on() -> Result<()> {
    run(async {
        let shop = shop("pauses").replicas(2).ack_wait(ACK_WAIT).start().await?;
        let workload = Workload::prepare(&shop).await?;
        let pids = shop.pids().await?;
        let before = workload.place_many(&shop, 40, 8).await?;
        for service in Service::ALL {
            shop.replica(service).freeze().await?;
        }
        // They end although one replica of each service has stopped in the middle of them, with leases and deliveries.
        let meanwhile = workload.place_many(&shop, 40, 8).await?;
        shop.end(&before).await?;
        shop.end(&meanwhile).await?;
        for service in Service::ALL {
            shop.replica(service).thaw().await?;
        }
        let after = workload.place_many(&shop, 40, 8).await?;
        shop.end(&after).await?;
        ensure!(shop.pids().await? == pids, "a service was restarted");
        shop.finish().await
    })
}
