//! SIGKILL at every fail-point, in every service, with all four flows on their way: the service comes back and every order
//! ends as it should.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::Duration;

use acceptance::shop::{End, Ended, Placed, Replica, Service, Shop, Workload};
use anyhow::{Context, Result, ensure};
use testkit::wait;

use crate::{run, shop};

/// Every fail-point of a service that has a database, in four groups that take about as long.
const POINTS: [&[&str]; 4] = [
    &["api.before_commit", "api.after_commit_before_reply", "relay.after_claim", "relay.after_publish_before_ack"],
    &["relay.after_ack_before_mark", "relay.mid_batch", "relay.after_mark", DRAIN],
    &["consume.after_receive", "consume.after_inbox_insert", "consume.after_effect_before_outbox"],
    &["consume.before_commit", "consume.after_commit_before_ack", "consume.after_ack"],
];
/// Reached when a process is asked to finish, not before.
const DRAIN: &str = "shutdown.drain";
/// Reached when an operator redrives a dead letter: struck in `redrive.rs`.
pub(crate) const REDRIVE: &str = "redrive.after_requeue";
/// Reached when the broker has lost facts, and when something is past its retention: neither happens in this shop.
const UNREACHED: [&str; 2] = ["reconcile.before_republish", "janitor.mid_delete"];
/// Which hits kill: the first, and in the process after it the third, in the middle of the recovery from the first.
const HITS: [u32; 2] = [1, 3];
/// How long a point may take until it is hit: the facts before it may wait for a dead owner's lease and for unanswered
/// deliveries, one service after the other.
pub(crate) const HIT_LIMIT: Duration = Duration::from_secs(90);
/// The least that services accept: what a killed process had in hand comes back after it.
const ACK_WAIT: Duration = Duration::from_secs(10);

#[test]
fn a_kill_around_a_request_or_a_publish_loses_nothing_and_repeats_nothing() -> Result<()> {
    run(async { tokio::try_join!(sweep("kills-1", POINTS[0]), sweep("kills-2", POINTS[1])).map(drop) })
}

#[test]
fn a_kill_around_a_delivery_loses_nothing_and_repeats_nothing() -> Result<()> {
    run(async { tokio::try_join!(sweep("kills-3", POINTS[2]), sweep("kills-4", POINTS[3])).map(drop) })
}

async fn sweep(name: &str, points: &[&'static str]) -> Result<()> {
    let shop = shop(name).ack_wait(ACK_WAIT).start().await?;
    let workload = Workload::prepare(&shop).await?;
    let mut struck = Vec::new();
    for point in points {
        struck.push((*point, strike(&shop, &workload, point).await.context(*point)?));
    }
    let in_flight = struck.iter().flat_map(|(_, placed)| placed).any(|placed| placed.end == End::Cancelled("customer"));
    ensure!(in_flight, "no cancellation came in time, so none was struck");
    // The last processes still die at their third hit; those after them do not.
    for (point, placed) in struck {
        shop.end(&placed).await.context(point)?;
    }
    shop.finish().await
}

/// Starts every service anew so that it dies at `point`, sends all flows on their way, and sees every service die. Its
/// orders may still be on their way afterwards: the next strike meets the recovery from this one.
async fn strike(shop: &Shop, workload: &Workload, point: &str) -> Result<Vec<Placed>> {
    let armed = HITS.map(|hit| ("MESH_FAILPOINT", format!("{point}={hit}:kill")));
    let [orders, payments, inventory] = Service::ALL.map(|service| shop.replica(service));
    tokio::try_join!(
        orders.restart_with(armed.clone()),
        payments.restart_with(armed.clone()),
        inventory.restart_with(armed),
    )?;
    let before = Service::ALL.map(|service| shop.replica(service).ended().len());
    // Every service has a request of its own to answer, too.
    let (placed, _, _) = tokio::try_join!(workload.place_each(shop), workload.pay_in(shop), workload.restock(shop))?;
    for (service, before) in Service::ALL.into_iter().zip(before) {
        let replica = shop.replica(service);
        if point == DRAIN {
            let status = replica.term().await?;
            ensure!(status.signal() == Some(9), "{service} did not die while it drained: {status}");
        } else {
            wait_for_death(replica, before).await?;
        }
    }
    Ok(placed)
}

/// A listed point that is never hit fails here.
async fn wait_for_death(replica: &Replica, before: usize) -> Result<()> {
    let poll = || async {
        let ended = replica.ended().split_off(before);
        if ended.iter().any(Ended::by_failpoint) { Ok(()) } else { Err(format!("{ended:?}")) }
    };
    Ok(wait::until(&format!("{} to be killed", replica.name()), HIT_LIMIT, poll).await?)
}

#[test]
fn every_fail_point_of_the_runtime_is_in_the_sweep() -> Result<()> {
    let mut sources = vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/mesh/src"))];
    let mut found = BTreeSet::new();
    while let Some(path) = sources.pop() {
        if path.ends_with("src/kv") {
            // Services without a database are no part of this shop; `crates/mesh/tests/kv/crashes.rs` ends them.
            continue;
        }
        if path.is_dir() {
            sources.extend(std::fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let hits = text.split("failpoints::hit(\"").skip(1);
        found.extend(hits.filter_map(|rest| rest.split('"').next()).map(str::to_owned));
    }
    let swept: BTreeSet<String> =
        POINTS.concat().into_iter().chain([REDRIVE]).chain(UNREACHED).map(str::to_owned).collect();
    ensure!(found == swept, "the runtime has {found:?}, the sweep strikes {swept:?}");
    Ok(())
}

#[test]
fn a_kill_in_the_middle_of_an_atomic_batch_stores_every_fact_once() -> Result<()> {
    run(async {
        let shop = shop("kills-batch").ack_wait(ACK_WAIT).start().await?;
        let workload = Workload::prepare(&shop).await?;
        let orders = shop.replica(Service::Orders);
        orders.restart_with([("MESH_FAILPOINT", "relay.mid_batch=15:kill".to_owned())]).await?;
        let before = orders.ended().len();
        // A backlog of more rows than go out one by one.
        shop.nats().kill9().await;
        let placed = workload.place_many(&shop, 60, 8).await?;
        shop.nats().restart().await?;
        wait_for_death(orders, before).await?;
        shop.end(&placed).await?;
        shop.finish().await
    })
}
