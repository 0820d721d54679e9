//! Links that break in the worst places: in the middle of an answer to COMMIT, or without a word.

use std::time::Duration;

use acceptance::shop::{Service, Shop, Workload};
use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use testkit::{Direction, wait};

use crate::{run, shop};

/// How long a cut may wait for traffic to cut.
const CUT_LIMIT: Duration = Duration::from_secs(30);
/// After so many bytes of answers the link to a database is cut: somewhere in a statement, a transaction, a commit.
const CUTS: [u64; 4] = [1, 333, 2_000, 7_777];
/// Missed heartbeats and a dead connection are noticed within 15 s; a link that is silent for longer is replaced.
const SILENCE: Duration = Duration::from_secs(20);

#[test]
fn a_database_link_cut_in_the_middle_of_answers_loses_nothing_and_repeats_nothing() -> Result<()> {
    run(async {
        let shop = shop("database-links").linked().start().await?;
        let workload = Workload::prepare(&shop).await?;
        let pids = shop.pids().await?;
        let cuts = async {
            for bytes in CUTS {
                for service in Service::ALL {
                    cut(&shop, service, bytes).await?;
                }
            }
            Ok(())
        };
        shop.under_load(&workload, cuts).await?;
        ensure!(shop.pids().await? == pids, "a service was restarted");
        shop.finish().await
    })
}

/// Cuts one connection of a service to its database when so many more bytes have arrived.
async fn cut(shop: &Shop, service: Service, bytes: u64) -> Result<()> {
    let link = &shop.servers().links(service)?.database;
    let before = link.passed_bytes(Direction::ToClient);
    link.cut_after(Direction::ToClient, bytes);
    wait::until(&format!("{bytes} bytes to {service}"), CUT_LIMIT, || async {
        let passed = link.passed_bytes(Direction::ToClient) - before;
        if passed >= bytes { Ok(()) } else { Err(format!("{passed} bytes")) }
    })
    .await?;
    Ok(link.heal().await?)
}

#[test]
fn a_silent_link_to_the_broker_is_replaced() -> Result<()> {
    run(async {
        let shop = shop("broker-links").linked().start().await?;
        let workload = Workload::prepare(&shop).await?;
        let pids = shop.pids().await?;
        let silence = async { try_join_all(Service::ALL.map(|service| fall_silent(&shop, service))).await.map(drop) };
        shop.under_load(&workload, silence).await?;
        ensure!(shop.pids().await? == pids, "a service was restarted");
        shop.finish().await
    })
}

/// Lets no more answers of the broker reach a service, until it gives the link up and makes another.
async fn fall_silent(shop: &Shop, service: Service) -> Result<()> {
    let link = &shop.servers().links(service)?.nats;
    let before = link.accepted();
    link.blackhole(Direction::ToClient);
    wait::until(&format!("{service} to give the silent link up"), SILENCE, || async {
        if link.accepted() > before { Ok(()) } else { Err("it still waits") }
    })
    .await?;
    link.reset();
    Ok(link.heal().await?)
}
