//! What stands in the outbox: all or nothing of a transaction, in commit order per key, under ids that do not change.

use std::sync::Arc;

use envelope::Event;
use mesh::testing::{TestBed, message};
use mesh::{Cause, Failure, Progress, PublishError, Timer, Tx, Verdict};
use serde::{Deserialize, Serialize};
use testkit::{Postgres, PostgresOptions};
use uuid::Uuid;

use crate::probe::{Act, AnswerOpened, Opened, SERVICE, service};
use crate::world::{World, count, database};

/// Sixteen writers, three keys per transaction out of six, each commit some time after its sequences were drawn, one in
/// five rolled back at that point.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequences_follow_the_commits_of_a_key_and_its_versions_have_no_gap() {
    let postgres =
        Postgres::start(PostgresOptions::new().without_fsync().setting("track_commit_timestamp", "on")).await.unwrap();
    let world = World::on(&postgres).await;
    sqlx::raw_sql(
        "create function late() returns trigger language plpgsql as $$ begin
             perform pg_sleep(random() * 0.004);
             if random() < 0.05 then raise exception 'rolled back'; end if;
             return null;
         end $$;
         create constraint trigger late after insert on mesh.outbox deferrable initially deferred
             for each row execute function late()",
    )
    .execute(world.pool())
    .await
    .unwrap();
    let writer = Arc::new(world.writer().await);
    let writers = (0..16_u32).map(|task| {
        let writer = Arc::clone(&writer);
        tokio::spawn(async move {
            let mut committed = 0;
            for round in 0..10 {
                // The keys of a transaction in an order of its own: writers that lock in that order would deadlock.
                let keys = [task, task * 5 + round, task + 3].map(|key| Uuid::from_u128(u128::from(key % 6) + 1));
                let facts: Vec<Opened> = (0..6).map(|n| Opened { id: keys[n as usize % 3], n }).collect();
                committed += if writer.publish(&facts).await.is_ok() { 6 } else { 0 };
            }
            committed
        })
    });
    let committed: i64 = futures_util::future::join_all(writers).await.into_iter().map(Result::unwrap).sum();

    let rows: Vec<(String, i64, f64, String, i64)> = sqlx::query_as(
        "select partition_key, key_version, extract(epoch from pg_xact_commit_timestamp(xmin))::float8, xmin::text,
                (convert_from(payload, 'utf8')::json ->> 'n')::bigint
         from mesh.outbox order by partition_key, seq",
    )
    .fetch_all(world.pool())
    .await
    .unwrap();
    assert_eq!(rows.len() as i64, committed, "what was committed, and nothing of what was rolled back");
    assert!((1..960).contains(&committed), "{committed} of 960: some, not all");
    for pair in rows.windows(2) {
        let [(key, version, at, transaction, n), (next_key, next_version, next_at, next_transaction, next_n)] = pair
        else {
            unreachable!()
        };
        if key != next_key {
            assert_eq!(*next_version, 1);
            continue;
        }
        assert_eq!(*next_version, version + 1, "key {key}");
        assert!(next_at >= at, "key {key} version {next_version} was committed before its predecessor");
        assert!(transaction != next_transaction || next_n > n, "within a transaction, in the order of publishing");
    }
    Arc::into_inner(writer).unwrap().stop().await.unwrap();
}

#[tokio::test]
async fn a_handling_that_was_rolled_back_publishes_under_the_same_id_when_it_runs_again() {
    let database = database().await;
    let fact = message(&Opened { id: Uuid::from_u128(1), n: 1 }, Uuid::from_u128(9 << 80)).unwrap();
    let subscriber =
        AnswerOpened::script(|received| if received.attempt == 1 { Act::Fail("at first") } else { Act::Answer });
    let bed = TestBed::new(service().subscribe(subscriber.clone()), database.pool().clone());
    assert!(matches!(bed.deliver_message(fact.clone(), false).await[0].1, Verdict::Retry(_)));

    // The process is another one when it runs again.
    let bed = TestBed::new(service().subscribe(subscriber.clone()), database.pool().clone());
    assert_eq!(bed.deliver_message(fact.clone(), true).await[0].1, Verdict::Handled);
    let entries = subscriber.entries();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0].answer, entries[1].answer);
    let published: Vec<Uuid> =
        sqlx::query_scalar("select event_id from mesh.outbox").fetch_all(database.pool()).await.unwrap();
    assert_eq!(published, [entries[0].answer]);
}

#[tokio::test]
async fn nothing_of_a_transaction_that_was_rolled_back_is_published() {
    let database = database().await;
    let subscriber = AnswerOpened::script(|received| if received.event.n == 1 { Act::Reject } else { Act::Panic });
    let bed = TestBed::new(service().subscribe(subscriber.clone()), database.pool().clone());
    for n in 1..=2 {
        bed.deliver(&Opened { id: Uuid::from_u128(n.into()), n }).await.unwrap();
    }
    assert_eq!(subscriber.entries().len(), 2, "both published before they failed");
    assert_eq!(count(database.pool(), "select count(*) from mesh.outbox").await, 0);
    assert_eq!(count(database.pool(), "select count(*) from mesh.key_version").await, 0);
    assert_eq!(count(database.pool(), "select count(*) from effect").await, 0);
}

#[tokio::test]
async fn a_fact_that_cannot_travel_is_refused_before_the_database_hears_of_it() {
    let database = database().await;
    let bed = TestBed::new(service(), database.pool().clone());
    bed.tick(&Arc::new(Refusals)).await.unwrap();
    // The transaction went on: a statement that had failed in the database would have poisoned it.
    let rows: Vec<(i64, String)> =
        sqlx::query_as("select key_version, partition_key from mesh.outbox").fetch_all(database.pool()).await.unwrap();
    assert_eq!(rows, [(1, "fine".to_owned())]);
}

/// Publishes what must be refused, then one fact that is fine.
struct Refusals;

impl Timer for Refusals {
    const NAME: &'static str = "refusals";

    async fn tick(&self, tx: &mut Tx) -> Result<Progress, Failure> {
        let cause = Cause { event_id: Uuid::from_u128(1), correlation_id: Uuid::from_u128(2), hops: 0 };
        tx.continue_flow(cause.clone());
        let noted = |key: &str, text: String| Noted { key: key.to_owned(), text, number: 1 };
        assert!(matches!(tx.publish(&noted("fine", "x".repeat(65_536))), Err(PublishError::Body(_))), "too large");
        assert!(matches!(tx.publish(&noted("fine", "a\0b".to_owned())), Err(PublishError::Body(_))), "NUL");
        let beyond = Noted { number: 1 << 53, ..noted("fine", String::new()) };
        assert!(matches!(tx.publish(&beyond), Err(PublishError::Body(_))), "an integer that a double does not hold");
        for key in ["", "a b", "a\r\nb", "\u{e9}"] {
            let refused = tx.publish(&noted(key, String::new()));
            assert!(matches!(refused, Err(PublishError::Subject(_) | PublishError::Header(_))), "key {key:?}");
        }
        let foreign = tx.publish(&Elsewhere { id: Uuid::from_u128(1) });
        assert!(matches!(foreign, Err(PublishError::ForeignFact { domain: "elsewhere", service: SERVICE })));
        tx.continue_flow(Cause { hops: envelope::HOPS_MAX, ..cause.clone() });
        let loops = tx.publish(&noted("fine", String::new()));
        assert!(matches!(loops, Err(PublishError::TooManyHops { hops }) if hops == envelope::HOPS_MAX + 1));
        tx.continue_flow(cause);
        assert_eq!(tx.staged_count(), 0);
        tx.publish(&noted("fine", "x".to_owned()))?;
        Ok(Progress::Idle)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Noted {
    key: String,
    text: String,
    number: i64,
}

impl Event for Noted {
    const DOMAIN: &'static str = SERVICE;
    const NAME: &'static str = "noted";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 0;

    fn key(&self) -> String {
        self.key.clone()
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Elsewhere {
    id: Uuid,
}

impl Event for Elsewhere {
    const DOMAIN: &'static str = "elsewhere";
    const NAME: &'static str = "happened";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 0;

    fn key(&self) -> String {
        self.id.to_string()
    }
}
