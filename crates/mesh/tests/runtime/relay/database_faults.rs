//! The database cuts the relay off, or goes away.

use std::time::Duration;

use testkit::{Postgres, PostgresOptions, wait};
use tokio::time::Instant;
use uuid::Uuid;

use super::burst::{assert_ordered, ids_once};
use crate::probe::{Opened, service};
use crate::world::{PATIENCE, World};

fn facts(rounds: std::ops::Range<u32>) -> Vec<Opened> {
    rounds.map(|n| Opened { id: Uuid::from_u128(u128::from(n % 50) + 1), n }).collect()
}

async fn until_sent(world: &World, least: i64) {
    wait::until("a part of the burst", PATIENCE, || async {
        match world.count("select count(*) from mesh.outbox_sent").await {
            sent if sent >= least => Ok(()),
            sent => Err(format!("{sent} sent")),
        }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_whose_sessions_are_ended_goes_on() {
    let world = World::start().await;
    let writer = world.writer().await;
    for start in (0..20_000).step_by(1_000) {
        writer.publish(&facts(start..start + 1_000)).await.unwrap();
    }
    let running = world.run(service()).await;
    for part in 1..=5 {
        until_sent(&world, part * 2_000).await;
        let ended = world
            .count(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity
                 where datname = current_database() and application_name = 'probe relay'",
            )
            .await;
        assert!(ended >= 1, "the relay has sessions");
    }
    world.until_published().await;
    let stored = world.stored().await;
    assert_eq!(ids_once(&stored).len(), 20_000);
    assert_ordered(&stored);
    running.stop().await.unwrap();
    writer.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_killed_and_comes_back_costs_no_committed_fact() {
    let postgres = Postgres::start(PostgresOptions::new().without_fsync()).await.unwrap();
    let world = World::on(&postgres).await;
    let running = world.run(service()).await;
    let mut committed = 0;
    for start in (0..10_000_u32).step_by(100) {
        if start % 3_000 == 2_000 {
            postgres.kill9().await;
            // What is published now fails, and says so.
            assert!(running.publish(&facts(start..start + 100)).await.is_err());
            postgres.restart().await.unwrap();
        }
        let published = wait::until("the database", PATIENCE, || async {
            running.publish(&facts(start..start + 100)).await.map_err(|error| format!("{error:#}"))
        });
        published.await.unwrap();
        committed += 100;
    }
    until_sent(&world, 10_000).await;
    wait::until("an empty outbox", Duration::from_secs(20), || async {
        match world.count("select count(*) from mesh.outbox").await {
            0 => Ok(()),
            waiting => Err(format!("{waiting} rows")),
        }
    })
    .await
    .unwrap();
    let stored = world.stored().await;
    assert_eq!(ids_once(&stored).len(), committed);
    assert_ordered(&stored);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_stops_in_time_while_its_database_is_away_and_the_next_one_goes_on() {
    let postgres = Postgres::start(PostgresOptions::new().without_fsync()).await.unwrap();
    let world = World::on(&postgres).await;
    let writer = world.writer().await;
    for start in (0..20_000).step_by(1_000) {
        writer.publish(&facts(start..start + 1_000)).await.unwrap();
    }
    writer.stop().await.unwrap();
    let running = world.run(service()).await;
    until_sent(&world, 1_000).await;
    postgres.kill9().await;
    let stopping = Instant::now();
    running.stop().await.unwrap();
    assert!(stopping.elapsed() < Duration::from_secs(12), "{:?}", stopping.elapsed());

    postgres.restart().await.unwrap();
    let running = world.run(service()).await;
    until_sent(&world, 20_000).await;
    let stored = world.stored().await;
    assert_eq!(ids_once(&stored).len(), 20_000);
    assert_ordered(&stored);
    running.stop().await.unwrap();
}
