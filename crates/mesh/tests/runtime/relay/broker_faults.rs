//! NATS goes away in every way that it can; what is committed meanwhile is published when it returns.

use std::sync::Arc;
use std::time::Duration;

use mesh::testing::Running;
use testkit::{Direction, Proxy, wait};
use tokio::time::Instant;
use uuid::Uuid;

use super::burst::{assert_ordered, ids_once};
use crate::probe::{Opened, service};
use crate::world::{PATIENCE, World, config, elapse};

/// Twenty keys, so that a key has many facts in every round.
fn facts(rounds: std::ops::Range<u32>) -> Vec<Opened> {
    rounds.map(|n| Opened { id: Uuid::from_u128(u128::from(n % 20) + 1), n }).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_committed_while_nats_is_down_is_published_within_two_seconds_of_its_return() {
    let world = World::start().await;
    let running = world.run(service()).await;
    running.publish(&facts(0..20)).await.unwrap();
    world.until_published().await;
    world.nats.term().await.unwrap();
    let down = Instant::now();
    let mut n = 20;
    while down.elapsed() < Duration::from_secs(7) {
        running.publish(&facts(n..n + 10)).await.unwrap();
        n += 10;
        elapse(Duration::from_millis(100)).await;
    }
    world.nats.restart().await.unwrap();
    let back = Instant::now();
    world.until_published().await;
    assert!(back.elapsed() < Duration::from_secs(2), "published {:?} after the return", back.elapsed());
    let stored = world.stored().await;
    assert_eq!(ids_once(&stored).len(), n as usize);
    assert_ordered(&stored);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nats_server_that_is_killed_in_a_burst_costs_neither_a_fact_nor_the_order() {
    let world = World::start().await;
    let writer = world.writer().await;
    for start in (0..30_000).step_by(1_000) {
        writer.publish(&facts(start..start + 1_000)).await.unwrap();
    }
    let running = world.run(service()).await;
    for kills in 1..=3_i64 {
        wait::until("a part of the burst", PATIENCE, || async {
            match world.count("select count(*) from mesh.outbox_sent").await {
                sent if sent > kills * 5_000 => Ok(()),
                sent => Err(sent),
            }
        })
        .await
        .unwrap();
        world.nats.kill9().await;
        world.nats.restart().await.unwrap();
    }
    world.until_published().await;
    let stored = world.stored().await;
    assert_eq!(ids_once(&stored).len(), 30_000);
    assert_ordered(&stored);
    running.stop().await.unwrap();
    writer.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_transaction_is_open_while_nats_does_not_answer() {
    let world = World::start().await;
    let proxy = Proxy::start(world.nats.address()).await.unwrap();
    let through = config(&world.database_url, &proxy.through(&world.nats.url()));
    let running = Arc::new(Running::start(service(), through).await.unwrap());
    running.publish(&facts(0..20)).await.unwrap();
    world.until_published().await;
    proxy.blackhole(Direction::ToClient);
    running.publish(&facts(20..120)).await.unwrap();
    let silent = Instant::now();
    while silent.elapsed() < Duration::from_secs(3) {
        let open: Vec<String> = sqlx::query_scalar(
            "select application_name || ': ' || query from pg_stat_activity
             where datname = current_database() and application_name like 'probe %' and state like 'idle in transaction%'",
        )
        .fetch_all(world.pool())
        .await
        .unwrap();
        assert!(open.is_empty(), "{open:?}");
    }
    assert_eq!(world.count("select count(*) from mesh.outbox").await, 100);
    proxy.heal().await.unwrap();
    world.until_published().await;
    let stored = world.stored().await;
    assert_eq!(ids_once(&stored).len(), 120);
    assert_ordered(&stored);
    Arc::into_inner(running).unwrap().stop().await.unwrap();
}
