use sqlx::migrate::Migrator;
use sqlx::postgres::PgPoolOptions;

use super::*;
use crate::process::RELAY_PLANS;
use crate::schema;

const BACKLOG: i64 = 20_000;

/// The planner knows nothing about a fresh backlog, and what it guesses from the arrays is wrong.
#[tokio::test]
async fn a_round_reads_its_rows_and_not_the_backlog() {
    let migrate = |url: String| async move { schema::migrate(&url.parse()?, &Migrator::DEFAULT).await };
    let database = testkit::database("mesh", migrate).await.unwrap();
    sqlx::query(
        "insert into mesh.outbox (bucket_group, event_id, subject, event_type, partition_key, key_version, headers, payload)
         select 0, gen_random_uuid(), 'evt.a.b.v1.0', 'a.b.v1', 'key ' || n, 1, '[]', '{}' from generate_series(1, $1) n",
    )
    .bind(BACKLOG)
    .execute(database.pool())
    .await
    .unwrap();
    let url: crate::config::DatabaseUrl = database.url().parse().unwrap();
    let options = url.connect_options("test").options(RELAY_PLANS);
    let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    let in_flight: Vec<i64> = (1..=1_000).collect();
    let held: Vec<String> = (0..50).map(|n| format!("held {n}")).collect();

    let range = Range { bucket_group: 0, epoch: 1, after: 0 };
    let rows = above(&pool, &[range], &in_flight, &held, 100).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), (1_001..=1_100).collect::<Vec<_>>());

    sqlx::query("select pg_stat_force_next_flush()").execute(&pool).await.unwrap();
    let read: i64 = sqlx::query_scalar(
        "select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables
         where relid = 'mesh.outbox'::regclass",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    // Those in flight, those wanted, and not the 20,000.
    assert!(read <= 1_200, "{read} rows were read");
}
