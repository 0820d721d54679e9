//! A sequence is drawn before it is visible: what is committed late is published all the same, and what is not committed
//! holds nothing up.

use std::time::Duration;

use mesh::testing::message;
use sqlx::{AssertSqlSafe, PgConnection};
use testkit::wait;
use tokio::time::Instant;
use uuid::Uuid;

use super::burst::{assert_ordered, ids_once};
use crate::probe::{Opened, service};
use crate::world::{PATIENCE, World, elapse};

/// Inserts a fact as the commit of a service does, in a transaction that stays open.
async fn insert(connection: &mut PgConnection, id: Uuid) {
    let fact = message(&Opened { id, n: 1 }, id).unwrap();
    let headers: Vec<_> = fact.headers.iter().filter(|(name, _)| name != "ce-time" && name != "ce-sequence").collect();
    let bucket: i16 = fact.subject.rsplit('.').next().unwrap().parse().unwrap();
    sqlx::query(
        "insert into mesh.outbox
             (bucket_group, event_id, subject, event_type, partition_key, key_version, headers, payload)
         values ($1, $2, $3, 'probe.opened.v1', $4, 1, $5, $6)",
    )
    .bind(bucket / 4)
    .bind(id)
    .bind(&fact.subject)
    .bind(id.to_string())
    .bind(serde_json::to_string(&headers).unwrap())
    .bind(&fact.body)
    .execute(connection)
    .await
    .unwrap();
}

#[tokio::test]
async fn a_fact_that_is_committed_after_later_ones_were_published_is_published_within_a_second() {
    let world = World::start().await;
    let running = world.run(service()).await;
    let mut late = world.pool().begin().await.unwrap();
    insert(&mut late, Uuid::from_u128(1)).await;
    for n in 2..200 {
        running.publish(&[Opened { id: Uuid::from_u128(n), n: 1 }]).await.unwrap();
    }
    world.until_published().await;
    // Long enough for a floor to be raised over it, if the open transaction were overlooked.
    elapse(Duration::from_millis(500)).await;
    late.commit().await.unwrap();
    let committed = Instant::now();
    world.until_count("select count(*) from mesh.outbox_sent", 199).await;
    assert!(committed.elapsed() < Duration::from_secs(1), "published after {:?}", committed.elapsed());
    let lowest: i64 = sqlx::query_scalar("select seq from mesh.outbox_sent where stream_sequence = 199")
        .fetch_one(world.pool())
        .await
        .unwrap();
    assert_eq!(lowest, 1, "the first sequence was drawn first and stored last");
    running.stop().await.unwrap();
}

#[tokio::test]
async fn rollbacks_and_idle_transactions_elsewhere_hold_nothing_up() {
    let world = World::start().await;
    let running = world.run(service()).await;
    // One session writes another table and then stands still, one has read the outbox, one holds an old snapshot.
    let mut writer = world.pool().begin().await.unwrap();
    sqlx::query("insert into effect (event_id, key, n) values (gen_random_uuid(), gen_random_uuid(), 0)")
        .execute(&mut *writer)
        .await
        .unwrap();
    let mut reader = world.pool().begin().await.unwrap();
    sqlx::raw_sql("set transaction isolation level repeatable read; select count(*) from mesh.outbox")
        .execute(&mut *reader)
        .await
        .unwrap();
    for n in 1..=20_u128 {
        let mut rolled_back = world.pool().begin().await.unwrap();
        insert(&mut rolled_back, Uuid::from_u128(1_000 + n)).await;
        rolled_back.rollback().await.unwrap();
        let published = Instant::now();
        running.publish(&[Opened { id: Uuid::from_u128(n), n: 1 }]).await.unwrap();
        world.until_published().await;
        assert!(published.elapsed() < Duration::from_secs(1), "fact {n} after {:?}", published.elapsed());
    }
    assert_eq!(ids_once(&world.stored().await).len(), 20);
    writer.rollback().await.unwrap();
    reader.rollback().await.unwrap();
    running.stop().await.unwrap();
}

/// Sixteen writers whose commits come up to 60 ms after their sequences were drawn, some never; the relay keeps up, so
/// that its floor is raised all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_fact_is_missed_however_late_its_commit() {
    let world = World::start().await;
    let running = world.run(service()).await;
    let writers = (0..16_u128).map(|task| {
        let pool = world.pool().clone();
        tokio::spawn(async move {
            let mut committed = Vec::new();
            for round in 0..60_u128 {
                let id = Uuid::from_u128(task * 1_000 + round + 1);
                let mut tx = pool.begin().await.unwrap();
                insert(&mut tx, id).await;
                let delay = (task * 7 + round * 13) % 60;
                let sleep = format!("select pg_sleep({}::float8 / 1000)", if delay < 30 { 0 } else { delay });
                sqlx::raw_sql(AssertSqlSafe(sleep)).execute(&mut *tx).await.unwrap();
                if (task + round) % 9 == 0 {
                    tx.rollback().await.unwrap();
                } else {
                    tx.commit().await.unwrap();
                    committed.push(id);
                }
            }
            committed
        })
    });
    let committed = futures_util::future::join_all(writers).await;
    let committed = committed.into_iter().flat_map(Result::unwrap).collect();
    world.until_published().await;
    let stored = world.stored().await;
    assert_eq!(ids_once(&stored), committed);
    assert_ordered(&stored);
    running.stop().await.unwrap();
}

/// A claim that began at the first of 50 000 dead rows would read them all, each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_do_not_read_the_dead_rows_of_the_past() {
    let world = World::start().await;
    let mut pinned = world.pool().begin().await.unwrap();
    sqlx::raw_sql("set transaction isolation level repeatable read; select 1").execute(&mut *pinned).await.unwrap();
    let running = world.run(service()).await;
    for n in 0..100_u32 {
        let facts: Vec<Opened> = (0..500).map(|key| Opened { id: Uuid::from_u128(key + 1), n }).collect();
        running.publish(&facts).await.unwrap();
    }
    world.until_published().await;
    let before = index_reads(&world, 0).await;
    running.publish(&[Opened { id: Uuid::from_u128(1), n: 100 }]).await.unwrap();
    let after = index_reads(&world, before.scans + 500).await;
    let per_scan = (after.tuples - before.tuples) / (after.scans - before.scans);
    assert!(per_scan < 100, "{per_scan} index entries per scan");
    world.until_count("select count(*) from mesh.outbox_sent", 50_001).await;
    pinned.rollback().await.unwrap();
    running.stop().await.unwrap();
}

/// What the scans of the outbox's key have read so far.
struct IndexReads {
    scans: i64,
    tuples: i64,
}

/// The numbers once at least so many scans are counted; sessions report them with a delay.
async fn index_reads(world: &World, scans_min: i64) -> IndexReads {
    wait::until("scans of the outbox", PATIENCE, || async {
        let (scans, tuples): (i64, i64) = sqlx::query_as(
            "select idx_scan, idx_tup_read from pg_stat_user_indexes where indexrelname = 'outbox_pkey'",
        )
        .fetch_one(world.pool())
        .await
        .unwrap();
        if scans >= scans_min { Ok(IndexReads { scans, tuples }) } else { Err(format!("{scans} scans")) }
    })
    .await
    .unwrap()
}
