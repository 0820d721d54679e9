//! Several relays on one outbox: they share, they take over, they settle nothing that is not theirs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mesh::testing::Running;
use serde_json::json;
use sqlx::PgPool;
use testkit::{Direction, Nats, NatsOptions, Proxy, wait};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use uuid::Uuid;

use super::burst::{assert_ordered, ids_once};
use crate::crash::Replica;
use crate::probe::{Opened, service};
use crate::world::{PATIENCE, World, config, count, declare_stream, durable, elapse, stream};

fn facts(rounds: std::ops::Range<u32>) -> Vec<Opened> {
    rounds.map(|n| Opened { id: Uuid::from_u128(u128::from(n % 100) + 1), n }).collect()
}

/// Commits 100 facts again and again, while at most 1,000 wait: a relay of a slow machine is to be loaded, not buried.
/// Answers how many when it is told to end.
fn write_on(writer: Arc<Running>, pool: PgPool, end: Arc<AtomicBool>) -> JoinHandle<usize> {
    tokio::spawn(async move {
        let mut written = 0;
        while !end.load(Ordering::Relaxed) {
            if count(&pool, "select count(*) from mesh.outbox").await > 1_000 {
                tokio::task::yield_now().await;
                continue;
            }
            writer.publish(&facts(written..written + 100)).await.unwrap();
            written += 100;
        }
        written as usize
    })
}

/// Waits until the groups are held in these shares.
async fn until_shares(world: &World, expected: &[i64]) {
    wait::until("shares", PATIENCE, || async {
        let shares: Vec<i64> = sqlx::query_scalar(
            "select count(*) from mesh.outbox_lease where owner is not null and expires_at > clock_timestamp()
             group by owner order by 1 desc",
        )
        .fetch_all(world.pool())
        .await
        .unwrap();
        if shares == expected { Ok(()) } else { Err(format!("{shares:?}")) }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn relays_share_the_groups_under_load_and_publish_nothing_twice() {
    let nats = Nats::start(NatsOptions::new()).await.unwrap();
    // The server forgets ids at once, so that a second publish of a fact would be seen.
    let mut forgetful = stream();
    forgetful["duplicate_window"] = json!(100_000_000);
    declare_stream(&nats, &forgetful, &durable()).await;
    let world = World::around(nats).await;
    let writer = Arc::new(world.writer().await);
    let first = Running::start_relay(service(), world.config()).await.unwrap();
    until_shares(&world, &[16]).await;
    let end = Arc::new(AtomicBool::new(false));
    let writing = write_on(Arc::clone(&writer), world.pool().clone(), Arc::clone(&end));
    let second = Running::start_relay(service(), world.config()).await.unwrap();
    until_shares(&world, &[8, 8]).await;
    first.stop().await.unwrap();
    until_shares(&world, &[16]).await;
    end.store(true, Ordering::Relaxed);
    let written = writing.await.unwrap();
    world.until_published().await;
    let stored = world.stored().await;
    assert_eq!(ids_once(&stored).len(), written);
    assert_ordered(&stored);
    second.stop().await.unwrap();
    Arc::into_inner(writer).unwrap().stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_groups_of_a_crashed_relay_are_taken_over_within_a_lease() {
    let world = World::start().await;
    let writer = world.writer().await;
    let crashing = Replica::start_relay(service(), world.config()).await;
    let surviving = Running::start_relay(service(), world.config()).await.unwrap();
    until_shares(&world, &[8, 8]).await;
    for start in (0..5_000).step_by(1_000) {
        writer.publish(&facts(start..start + 1_000)).await.unwrap();
    }
    crashing.crash();
    let crashed = Instant::now();
    for start in (5_000..10_000).step_by(1_000) {
        writer.publish(&facts(start..start + 1_000)).await.unwrap();
    }
    world.until_published().await;
    // A lease of 10 s, and a renewal of the survivor, every 3 s.
    assert!(crashed.elapsed() < Duration::from_millis(13_500), "{:?}", crashed.elapsed());
    let stored = world.stored().await;
    assert_eq!(ids_once(&stored).len(), 10_000);
    assert_ordered(&stored);
    surviving.stop().await.unwrap();
    writer.stop().await.unwrap();
}

/// Its acknowledgements arrive after another relay has taken its groups.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_that_lost_its_leases_settles_nothing() {
    let world = World::start().await;
    let proxy = Proxy::start(world.nats.address()).await.unwrap();
    let through = config(&world.database_url, &proxy.through(&world.nats.url()));
    let running = Running::start(service(), through).await.unwrap();
    running.publish(&facts(0..1)).await.unwrap();
    world.until_published().await;
    proxy.blackhole(Direction::ToClient);
    running.publish(&facts(1..31)).await.unwrap();
    wait::until("facts on the stream", PATIENCE, || async {
        if world.stored().await.len() == 31 { Ok(()) } else { Err("not yet") }
    })
    .await
    .unwrap();
    sqlx::query(
        "update mesh.outbox_lease
         set owner = gen_random_uuid(), epoch = epoch + 1, expires_at = clock_timestamp() + interval '3 s'",
    )
    .execute(world.pool())
    .await
    .unwrap();
    proxy.heal().await.unwrap();
    elapse(Duration::from_millis(1_500)).await;
    assert_eq!(world.count("select count(*) from mesh.outbox_sent").await, 1, "the rows are another relay's now");
    assert_eq!(world.count("select count(*) from mesh.outbox").await, 30);

    world.until_published().await;
    let stored = world.stored().await;
    assert_eq!(ids_once(&stored).len(), 31);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_relay_that_stops_gives_up_its_leases_at_once() {
    let world = World::start().await;
    let running = world.run(service()).await;
    running.publish(&facts(0..50)).await.unwrap();
    world.until_published().await;
    assert_eq!(world.count("select count(*) from mesh.outbox_lease where owner is not null").await, 16);
    running.stop().await.unwrap();
    assert_eq!(world.count("select count(*) from mesh.outbox_lease where owner is not null").await, 0);
    assert_eq!(world.count("select count(*) from mesh.outbox_lease where expires_at > '-infinity'").await, 0);
    assert_eq!(world.count("select count(*) from mesh.outbox_relay").await, 0);
}
