use sqlx::migrate::Migrator;
use testkit::TestDatabase;

use super::*;
use crate::relay::claim::{self, Range};
use crate::schema;

const OWNER: Uuid = Uuid::from_u128(1);
const EPOCH: i64 = 7;

/// Three facts in group 0, which [`OWNER`] holds at [`EPOCH`].
async fn outbox() -> TestDatabase {
    let migrate = |url: String| async move { schema::migrate(&url.parse()?, &Migrator::DEFAULT).await };
    let database = testkit::database("mesh", migrate).await.unwrap();
    sqlx::query(
        "insert into mesh.outbox (bucket_group, event_id, subject, event_type, partition_key, key_version, headers, payload)
         select 0, gen_random_uuid(), 'evt.a.b.v1.0', 'a.b.v1', 'key ' || n, 1, '[]', '{}' from generate_series(1, 3) n",
    )
    .execute(database.pool())
    .await
    .unwrap();
    sqlx::query("update mesh.outbox_lease set owner = $1, epoch = $2 where bucket_group = 0")
        .bind(OWNER)
        .bind(EPOCH)
        .execute(database.pool())
        .await
        .unwrap();
    database
}

async fn count(database: &TestDatabase, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(database.pool()).await.unwrap()
}

async fn rows(database: &TestDatabase, epoch: i64) -> Vec<Row> {
    let range = Range { bucket_group: 0, epoch, after: 0 };
    claim::above(database.pool(), &[range], &[], &[], 10).await.unwrap()
}

fn acknowledged(rows: &[Row]) -> Vec<Acknowledged> {
    let acknowledge =
        |row: &Row| Acknowledged { bucket_group: 0, seq: row.seq, epoch: row.epoch, stream_sequence: 40 + row.seq };
    rows.iter().map(acknowledge).collect()
}

#[tokio::test]
async fn acknowledged_rows_leave_only_under_the_lease_under_which_they_were_read() {
    let database = outbox().await;
    let pool = database.pool();
    let identity = StreamIdentity { created: OffsetDateTime::UNIX_EPOCH };
    let current = acknowledged(&rows(&database, EPOCH).await);
    let stale = acknowledged(&rows(&database, EPOCH - 1).await);
    assert_eq!(move_sent(pool, Uuid::from_u128(2), identity, &current).await.unwrap(), 0, "another owner");
    assert_eq!(move_sent(pool, OWNER, identity, &stale).await.unwrap(), 0, "the same owner in an earlier epoch");
    assert_eq!(count(&database, "select count(*) from mesh.outbox_sent").await, 0);

    assert_eq!(move_sent(pool, OWNER, identity, &current[..2]).await.unwrap(), 2);
    assert_eq!(move_sent(pool, OWNER, identity, &current).await.unwrap(), 1, "what is gone is not moved again");
    assert_eq!(count(&database, "select count(*) from mesh.outbox").await, 0);
    let noted = "select count(*) from mesh.outbox_sent
                 where stream = 'EVT' and stream_sequence = 40 + seq and stream_created = 'epoch'";
    assert_eq!(count(&database, noted).await, 3);
}

#[tokio::test]
async fn refusals_are_counted_and_rows_put_aside_under_their_lease_only() {
    let database = outbox().await;
    let pool = database.pool();
    let (current, stale) = (rows(&database, EPOCH).await, rows(&database, EPOCH - 1).await);
    count_refusal(pool, OWNER, &stale[0], "stale").await.unwrap();
    move_dead(pool, OWNER, &stale[0], "stale").await.unwrap();
    move_dead(pool, Uuid::from_u128(2), &current[0], "another owner").await.unwrap();
    assert_eq!(count(&database, "select count(*) from mesh.outbox where attempts = 0").await, 3);

    count_refusal(pool, OWNER, &current[0], "no").await.unwrap();
    assert_eq!(count(&database, "select count(*) from mesh.outbox where attempts = 1 and last_error = 'no'").await, 1);
    move_dead(pool, OWNER, &current[0], "never").await.unwrap();
    let dead = "select count(*) from mesh.outbox_dead where seq = 1 and attempts = 2 and error = 'never'";
    assert_eq!(count(&database, dead).await, 1);
    assert_eq!(dead_keys(pool).await.unwrap(), ["key 1"]);
}

#[tokio::test]
async fn a_claim_leaves_out_what_is_below_what_is_in_flight_and_what_is_held() {
    let database = outbox().await;
    let claim = async |after, in_flight: &[i64], held: &[String]| -> Vec<i64> {
        let range = Range { bucket_group: 0, epoch: EPOCH, after };
        let rows = claim::above(database.pool(), &[range], in_flight, held, 10).await.unwrap();
        rows.iter().map(|row| row.seq).collect()
    };
    assert_eq!(claim(0, &[], &[]).await, [1, 2, 3]);
    assert_eq!(claim(1, &[], &[]).await, [2, 3]);
    assert_eq!(claim(0, &[2], &[]).await, [1, 3]);
    assert_eq!(claim(0, &[3], &["key 1".to_owned()]).await, [2]);
}
