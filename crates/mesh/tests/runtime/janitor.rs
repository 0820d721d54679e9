//! What is no longer needed goes, what waits for somebody stays, and nobody waits for it.

use std::time::Duration;

use mesh::clock::{Clock, System};
use mesh::config::Config;
use mesh::testing::{Running, message};
use serde_json::json;
use sqlx::{AssertSqlSafe, PgPool};
use testkit::{Nats, NatsOptions};
use tokio::time::Instant;
use uuid::Uuid;

use crate::probe::{AnswerOpened, Opened, service};
use crate::world::{World, declare_stream, durable, elapse, stream};

const DAY: Duration = Duration::from_secs(86_400);

/// With a stream that keeps a fact for 14 days.
async fn world() -> World {
    let nats = Nats::start(NatsOptions::new()).await.unwrap();
    let mut aging = stream();
    aging["max_age"] = json!(u64::try_from((14 * DAY).as_nanos()).unwrap());
    declare_stream(&nats, &aging, &durable()).await;
    let world = World::around(nats).await;
    // What these tests write down as published was never on the stream, and nobody is to find that out.
    let elsewhere =
        "update mesh.task_lease set owner = gen_random_uuid(), expires_at = 'infinity' where task = 'reconcile'";
    execute(world.pool(), elsewhere).await;
    world
}

/// Published facts for 14 days, settled deliveries for 28, replies for 7.
fn config(world: &World) -> Config {
    let mut config = world.config();
    config.retention.redrive_horizon = 14 * DAY;
    config
}

async fn execute(pool: &PgPool, sql: impl Into<String>) {
    sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(pool).await.unwrap();
}

/// The partitions of a day in the past, as they would have been made on that day.
async fn partitions_of(pool: &PgPool, days_ago: i32) {
    sqlx::query("select mesh.ensure_partitions($1)").bind(-days_ago).execute(pool).await.unwrap();
}

/// A published fact, sent so long ago.
fn sent(days_ago: i32) -> String {
    format!(
        "insert into mesh.outbox_sent (bucket_group, seq, event_id, subject, event_type, partition_key, key_version, headers,
                                       payload, occurred_at, created_at, attempts, stream, stream_created, stream_sequence,
                                       sent_at)
         values (0, 1, gen_random_uuid(), 's', 't', 'k', 1, '[]', '', now(), now(), 0, 'EVT', now(), 1,
                 now() - interval '{days_ago} days');"
    )
}

/// An id of a flow that began so long ago, with `low` in its last place.
fn id_of(days_ago: u64, low: u128) -> Uuid {
    let begun = System.now().as_offset() - u32::try_from(days_ago).unwrap() * DAY;
    let millis = u128::try_from(begun.unix_timestamp_nanos()).unwrap() / 1_000_000;
    Uuid::from_u128((millis << 80) | (7 << 76) | (2 << 62) | low)
}

fn settled(id: Uuid, days_ago: i32) -> String {
    format!(
        "insert into mesh.inbox (event_id, subscriber, settled_at)
         values ('{id}', 'answer-opened', now() - interval '{days_ago} days');"
    )
}

fn kept(id: u32, state: &str) -> String {
    format!(
        "insert into mesh.dead_letter (subscriber, event_id, event_type, partition_key, state, reason, detail, attempts,
                                       subject, headers, payload, stream_sequence, build, parked_at)
         values ('s', '{}', 't', 'k{id}', '{state}', 'r', 'd', 1, 's', '[]', '', 1, 'b', now() - interval '3000 days');",
        Uuid::from_u128(id.into())
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_old_is_removed_and_what_waits_stays() {
    let world = world().await;
    let pool = world.pool();
    for days_ago in [10, 20, 21, 40, 50] {
        partitions_of(pool, days_ago).await;
    }
    let mut rows = vec![sent(20), sent(21), sent(10), sent(30), sent(0)];
    rows.extend([settled(id_of(40, 1), 40), settled(id_of(33, 2), 33), settled(id_of(20, 3), 20)]);
    // A flow of long ago that said something yesterday.
    rows.extend([settled(id_of(50, 4), 49), settled(id_of(50, 5), 1)]);
    rows.extend([kept(1, "parked"), kept(2, "dead")]);
    rows.extend([8, 6].map(|days| {
        format!(
            "insert into mesh.idempotency (operation, key, fingerprint, root_id, status, headers, body, created_at)
             values ('o', 'k{days}', '', gen_random_uuid(), 201, '[]', '', now() - interval '{days} days');"
        )
    }));
    rows.extend([29, 27].map(|days| {
        format!(
            "insert into mesh.delivery_attempt (event_id, subscriber, attempts, first_at)
             values (gen_random_uuid(), 's', 1, now() - interval '{days} days');"
        )
    }));
    rows.extend([kept(3, "dead"), kept(4, "dead")]);
    rows.extend([(3, 91), (4, 89)].map(|(id, days)| {
        format!(
            "update mesh.dead_letter set state = 'discarded', discarded_at = now() - interval '{days} days'
             where partition_key = 'k{id}';
             insert into mesh.operation (operation_id, token, action, reason, requested_by, rate_per_second, state, finished_at)
             values (gen_random_uuid(), gen_random_uuid(), 'discard', 'r', 'o', 1, 'finished', now() - interval '{days} days');"
        )
    }));
    execute(pool, rows.concat()).await;
    let running = Running::start(service(), config(&world)).await.unwrap();
    let old_partitions = "select count(*) from pg_inherits i join pg_class c on c.oid = i.inhrelid
                          where i.inhparent in ('mesh.outbox_sent'::regclass, 'mesh.inbox'::regclass)
                            and c.relname ~ '_[0-9]{8}$' and right(c.relname, 8) < to_char(now(), 'YYYYMMDD')";
    // Of the published facts the days 20, 21, 40 and 50 go, and of the settled ones the day 40. Day 50 holds yesterday's.
    world.until_count(old_partitions, 10 - 5).await;
    world.until_count("select count(*) from mesh.outbox_sent", 2).await;
    world.until_count("select count(*) from mesh.inbox", 3).await;
    world.until_count("select count(*) from mesh.idempotency", 1).await;
    world.until_count("select count(*) from mesh.delivery_attempt", 1).await;
    world.until_count("select count(*) from mesh.dead_letter where state = 'discarded'", 1).await;
    world.until_count("select count(*) from mesh.operation", 1).await;
    let waiting = "select count(*) from mesh.dead_letter where state <> 'discarded'";
    assert_eq!(world.count(waiting).await, 2, "they wait for a person");
    assert_eq!(world.count("select count(*) from mesh.idempotency where key = 'k6'").await, 1);
    let of_yesterday = "select count(*) from mesh.inbox where settled_at > now() - interval '2 days'";
    assert_eq!(world.count(of_yesterday).await, 1);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_duplicate_inside_the_horizon_is_still_a_duplicate() {
    let world = world().await;
    let id = id_of(28, 1);
    // One row that the janitor takes, to know that it was there.
    execute(world.pool(), [settled(id, 27), settled(id_of(40, 2), 29)].concat()).await;
    let subscriber = AnswerOpened::always();
    let running = Running::start(service().subscribe(subscriber.clone()), config(&world)).await.unwrap();
    world.until_count("select count(*) from mesh.inbox", 1).await;
    let fact = message(&Opened { id: Uuid::from_u128(1), n: 1 }, id).unwrap();
    world.publish(&fact, "late").await;
    world.until_acknowledged(1).await;
    assert!(subscriber.entries().is_empty(), "it was settled 27 days ago");
    assert_eq!(world.count("select count(*) from effect").await, 0);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_in_use_is_tried_again_later_and_no_writer_waits_for_it() {
    let world = world().await;
    partitions_of(world.pool(), 20).await;
    execute(world.pool(), sent(20)).await;
    // A reader that has not come to the partitions yet: only the parent is in its way.
    let mut reader = world.pool().begin().await.unwrap();
    sqlx::query("lock table only mesh.outbox_sent in access share mode").execute(&mut *reader).await.unwrap();
    let running = Running::start(service(), config(&world)).await.unwrap();
    let begun = Instant::now();
    let mut longest = Duration::ZERO;
    while begun.elapsed() < Duration::from_secs(6) {
        let asked = Instant::now();
        execute(world.pool(), sent(0)).await;
        longest = longest.max(asked.elapsed());
        elapse(Duration::from_millis(5)).await;
    }
    // A lock time-out of 50 ms, and a slow machine. Without it the writer would wait for the reader.
    assert!(longest < Duration::from_millis(1_000), "{longest:?}");
    let old = "select count(*) from mesh.outbox_sent where sent_at < now() - interval '14 days'";
    assert_eq!(world.count(old).await, 1, "the reader is still there");
    reader.commit().await.unwrap();
    world.until_count(old, 0).await;
    let metrics = reqwest::get(format!("http://{}/metrics", running.address())).await.unwrap().text().await.unwrap();
    let counted = |start: &str| metrics.lines().any(|line| line.starts_with(start));
    assert!(counted("janitor_failures_total{reason=\"held\"}"), "{metrics}");
    assert!(counted("janitor_partitions_removed_total{table=\"outbox_sent\"}"), "{metrics}");
    running.stop().await.unwrap();
}

#[tokio::test]
async fn an_inbox_that_would_forget_too_soon_is_refused_at_the_start() {
    let world = world().await;
    let mut config = config(&world);
    config.retention.inbox = Some(27 * DAY);
    let refused = format!("{:#}", Running::start(service(), config.clone()).await.unwrap_err());
    for part in ["MESH_INBOX_RETENTION_DAYS=27", "14 days (max_age)", "MESH_REDRIVE_HORIZON_DAYS adds 14", "28"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    config.retention.inbox = Some(28 * DAY);
    Running::start(service(), config).await.unwrap().stop().await.unwrap();
}
