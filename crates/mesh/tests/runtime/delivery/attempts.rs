//! How often a handler runs for a fact, and what is remembered of it.

use std::time::Duration;

use mesh::testing::TestBed;
use mesh::{DeadReason, Retry, RetryCause, Verdict};
use sqlx::PgPool;
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;

use super::{bed, fact};
use crate::probe::{Act, AnswerOpened, service};
use crate::world::{count, database};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fact_that_two_replicas_receive_at_once_enters_the_handler_once() {
    let database = database().await;
    let subscriber = AnswerOpened::script(|_| Act::Linger(Duration::from_millis(300)));
    let beds = [bed(&database, &subscriber), bed(&database, &subscriber), bed(&database, &subscriber)];
    let verdicts = futures_util::future::join_all(beds.iter().map(|bed| bed.deliver_message(fact(1, 1), false))).await;
    let mut verdicts: Vec<Verdict> = verdicts.into_iter().flatten().map(|(_, verdict)| verdict).collect();
    verdicts.sort_by_key(Verdict::label);
    assert_eq!(verdicts, [Verdict::Duplicate, Verdict::Duplicate, Verdict::Handled]);
    assert_eq!(subscriber.entries().len(), 1, "the others waited for the first one's claim");
    assert_eq!(count(database.pool(), "select count(*) from effect").await, 1);
}

/// Each attempt in another process: what is counted is in the database.
#[tokio::test]
async fn attempts_are_counted_across_processes_and_end_in_a_dead_letter_with_all_that_was_received() {
    let database = database().await;
    let subscriber = AnswerOpened::script(|received| match received.attempt {
        1 => Act::Fail("first"),
        2 => Act::Panic,
        _ => Act::Fail("and so on \0"),
    });
    for attempt in 1..=3 {
        let verdict = bed(&database, &subscriber).deliver_message(fact(1, 1), attempt > 1).await[0].1.clone();
        let Verdict::Retry(Retry { after, cause: RetryCause::Failure }) = verdict else { panic!("{verdict:?}") };
        assert!(after > Duration::ZERO, "never at once");
        assert_eq!(count(database.pool(), "select attempts::bigint from mesh.delivery_attempt").await, attempt);
    }
    let verdict = bed(&database, &subscriber).deliver_message(fact(1, 1), true).await[0].1.clone();
    assert_eq!(verdict, Verdict::Dead(DeadReason::AttemptsExhausted));
    let attempts: Vec<u32> = subscriber.entries().iter().map(|entry| entry.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4]);

    let (state, attempts, headers, payload): (String, i32, String, Vec<u8>) =
        sqlx::query_as("select state, attempts, headers, payload from mesh.dead_letter")
            .fetch_one(database.pool())
            .await
            .unwrap();
    assert_eq!((state.as_str(), attempts), ("dead", 4));
    let sent = fact(1, 1);
    assert_eq!(serde_json::from_str::<Vec<(String, String)>>(&headers).unwrap(), sent.headers);
    assert_eq!(payload, sent.body);
    let history: Vec<String> = sqlx::query_scalar(
        "select (entry ->> 'attempt') || ' ' || (entry ->> 'error')
         from mesh.dead_letter, jsonb_array_elements(history) entry",
    )
    .fetch_all(database.pool())
    .await
    .unwrap();
    let expected = ["1 first", "2 the handler panicked: as scripted", "3 and so on \u{fffd}", "4 and so on \u{fffd}"];
    assert_eq!(history, expected);
    assert_eq!(count(database.pool(), "select count(*) from mesh.delivery_attempt").await, 0);
    assert_eq!(count(database.pool(), "select count(*) from effect").await, 0);
}

#[tokio::test]
async fn a_rejected_fact_is_given_up_at_once() {
    let database = database().await;
    let subscriber = AnswerOpened::script(|_| Act::Reject);
    let verdict = bed(&database, &subscriber).deliver_message(fact(1, 1), false).await[0].1.clone();
    assert_eq!(verdict, Verdict::Dead(DeadReason::Rejected));
    let (reason, detail, attempts): (String, String, i32) =
        sqlx::query_as("select reason, detail, attempts from mesh.dead_letter")
            .fetch_one(database.pool())
            .await
            .unwrap();
    assert_eq!((reason.as_str(), detail.as_str(), attempts), ("rejected", "not now, not ever", 1));
    assert_eq!(count(database.pool(), "select count(*) from effect").await, 0);
}

#[tokio::test]
async fn a_fact_that_ends_the_process_each_time_is_given_up_after_the_attempts() {
    let database = database().await;
    let subscriber = AnswerOpened::script(|_| Act::Hang);
    for attempt in 1..=4_usize {
        let (seen, url) = (subscriber.clone(), database.url().to_owned());
        let died = spawn_blocking(move || {
            let process = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let service = service().subscribe(seen.clone());
            process.spawn(async move {
                let bed = TestBed::new(service, PgPool::connect(&url).await.unwrap());
                bed.deliver_message(fact(1, 1), attempt > 1).await
            });
            while seen.entries().len() < attempt {
                std::thread::yield_now();
            }
            process.shutdown_background();
        });
        died.await.unwrap();
    }
    let verdict = bed(&database, &subscriber).deliver_message(fact(1, 1), true).await[0].1.clone();
    assert_eq!(verdict, Verdict::Dead(DeadReason::AttemptsExhausted));
    let attempts: Vec<u32> = subscriber.entries().iter().map(|entry| entry.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4], "the fifth was not entered");
}

/// Its acknowledgements are lost again and again.
#[tokio::test]
async fn a_handled_fact_stays_handled_however_often_it_is_delivered() {
    let database = database().await;
    let subscriber = AnswerOpened::always();
    let bed = bed(&database, &subscriber);
    assert_eq!(bed.deliver_message(fact(1, 1), false).await[0].1, Verdict::Handled);
    for _ in 0..10 {
        assert_eq!(bed.deliver_message(fact(1, 1), true).await[0].1, Verdict::Duplicate);
    }
    assert_eq!(count(database.pool(), "select count(*) from mesh.delivery_attempt").await, 0, "nothing is left behind");
    assert_eq!(count(database.pool(), "select count(*) from effect").await, 1);
}

#[tokio::test]
async fn a_fact_that_is_handled_at_last_leaves_no_attempts_behind() {
    let database = database().await;
    let subscriber = AnswerOpened::script(|received| if received.attempt < 3 { Act::Fail("yet") } else { Act::Answer });
    let bed = bed(&database, &subscriber);
    for attempt in 1..=3 {
        bed.deliver_message(fact(1, 1), attempt > 1).await;
    }
    assert_eq!(count(database.pool(), "select count(*) from effect").await, 1);
    assert_eq!(count(database.pool(), "select count(*) from mesh.delivery_attempt").await, 0);
}

/// Its transaction holds the claim and a connection for as long as it hangs; more of them would drain the pool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_hangs_holds_one_connection_and_is_not_entered_beside_itself() {
    let database = database().await;
    let subscriber = AnswerOpened::script(|_| Act::Hang).policy(|policy| policy.timeout = Duration::from_millis(200));
    let bed = bed(&database, &subscriber);
    for redelivered in [false, true, true, true, true, true, true] {
        let verdict = bed.deliver_message(fact(1, 1), redelivered).await[0].1.clone();
        let Verdict::Retry(Retry { cause, .. }) = verdict else { panic!("{verdict:?}") };
        assert_eq!(cause, if redelivered { RetryCause::Running } else { RetryCause::Failure });
    }
    assert_eq!(subscriber.entries().len(), 1, "the first one is still at it");
    assert_eq!(count(database.pool(), "select attempts::bigint from mesh.delivery_attempt").await, 1);
    let held = "select count(*) from pg_stat_activity where datname = current_database()
                and pid <> pg_backend_pid() and xact_start is not null";
    assert_eq!(count(database.pool(), held).await, 1);
}
