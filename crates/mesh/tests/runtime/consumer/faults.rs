//! Servers go away under load: nothing is lost, nothing happens twice, and no attempt is used up by it.

use std::time::Duration;

use mesh::testing::Running;
use testkit::{Postgres, PostgresOptions, wait};
use uuid::Uuid;

use crate::crash::Replica;
use crate::probe::{Act, AnswerOpened, Opened, service};
use crate::world::{PATIENCE, World};

fn facts(range: std::ops::Range<u32>) -> Vec<Opened> {
    range.map(|n| Opened { id: Uuid::from_u128(u128::from(n % 200) + 1), n }).collect()
}

/// A handler of a few milliseconds.
fn lingering() -> AnswerOpened {
    AnswerOpened::script(|_| Act::Linger(Duration::from_millis(4)))
}

pub(super) async fn until_entered(subscriber: &AnswerOpened, least: usize) {
    wait::until("a part of the load", PATIENCE, || async {
        match subscriber.entries().len() {
            entered if entered >= least => Ok(()),
            entered => Err(format!("{entered} entered")),
        }
    })
    .await
    .unwrap();
}

async fn publish_all(running: &Running, facts: &[Opened]) {
    for chunk in facts.chunks(500) {
        running.publish(chunk).await.unwrap();
    }
}

/// Every fact of the load had its one effect.
async fn assert_one_effect_each(world: &World, expected: i64) {
    assert_eq!(world.count("select count(*) from effect").await, expected);
    assert_eq!(world.count("select count(distinct n) from effect").await, expected);
    assert_eq!(world.count("select count(*) from mesh.dead_letter").await, 0);
    assert_eq!(world.count("select count(*) from mesh.delivery_attempt").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_killed_under_load_costs_no_attempt_and_no_fact() {
    let postgres = Postgres::start(PostgresOptions::new().without_fsync()).await.unwrap();
    let world = World::on(&postgres).await;
    let subscriber = lingering();
    let running = world.run(service().subscribe(subscriber.clone())).await;
    publish_all(&running, &facts(0..3_000)).await;
    for part in [300, 1_200] {
        until_entered(&subscriber, part).await;
        postgres.kill9().await;
        postgres.restart().await.unwrap();
    }
    wait::until("all effects", PATIENCE, || async {
        match sqlx::query_scalar::<_, i64>("select count(*) from effect").fetch_one(world.pool()).await {
            Ok(3_000) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
    .unwrap();
    assert_one_effect_each(&world, 3_000).await;
    assert!(subscriber.entries().iter().all(|entry| entry.attempt == 1), "an outage is no attempt");
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nats_server_that_is_killed_under_load_costs_no_fact() {
    let world = World::start().await;
    let subscriber = lingering();
    let running = world.run(service().subscribe(subscriber.clone())).await;
    publish_all(&running, &facts(0..3_000)).await;
    for part in [300, 1_200] {
        until_entered(&subscriber, part).await;
        world.nats.kill9().await;
        world.nats.restart().await.unwrap();
    }
    world.until_count("select count(*) from effect", 3_000).await;
    assert_one_effect_each(&world, 3_000).await;
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_crashes_under_load_leaves_its_facts_to_the_other() {
    let world = World::start().await;
    let (crashing, surviving) = (lingering(), lingering());
    let replica = Replica::start(service().subscribe(crashing.clone()), world.config()).await;
    let running = world.run(service().subscribe(surviving.clone())).await;
    publish_all(&running, &facts(0..3_000)).await;
    until_entered(&crashing, 200).await;
    replica.crash();
    // What it had in hand comes again after `ack_wait`, 10 s.
    world.until_count("select count(*) from effect", 3_000).await;
    assert_one_effect_each(&world, 3_000).await;
    running.stop().await.unwrap();
}
