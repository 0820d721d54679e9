//! What a handler's statements meet in the database, and what becomes of the delivery.

use std::sync::atomic::{AtomicU32, Ordering};

use mesh::testing::TestBed;
use mesh::{Failure, Handled, Received, RetryCause, Subscriber, Tx, Verdict};
use sqlx::AssertSqlSafe;

use super::fact;
use crate::probe::{Answered, Opened, service};
use crate::world::{count, database};

/// Runs a statement that fails the first times, and then succeeds.
struct Statement {
    failing: &'static str,
    times: u32,
    /// Whether the handler goes on as if nothing had happened.
    swallowed: bool,
    publishes: bool,
    entered: AtomicU32,
}

impl Subscriber for Statement {
    type Event = Opened;
    const NAME: &'static str = "statement";

    async fn handle(&self, tx: &mut Tx, received: Received<Opened>) -> Result<Handled, Failure> {
        let Opened { id, n } = received.event;
        let failing = self.entered.fetch_add(1, Ordering::SeqCst) < self.times;
        let sql = if failing { self.failing } else { "select 1" };
        let ran = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut **tx).await;
        if !self.swallowed {
            ran?;
        }
        if self.publishes {
            tx.publish(&Answered { id, n })?;
        }
        Ok(Handled::Effect)
    }
}

#[tokio::test]
async fn a_lost_race_is_run_again_at_once_and_uses_up_no_attempt() {
    for code in ["40001", "40P01", "23505"] {
        let database = database().await;
        let raise = format!("do $$ begin raise exception 'lost' using errcode = '{code}'; end $$");
        let racing = Statement {
            failing: raise.leak(),
            times: 3,
            swallowed: false,
            publishes: true,
            entered: AtomicU32::new(0),
        };
        let bed = TestBed::new(service().subscribe(racing), database.pool().clone());
        assert_eq!(bed.deliver_message(fact(1, 1), false).await[0].1, Verdict::Handled, "{code}");
        assert_eq!(count(database.pool(), "select count(*) from mesh.delivery_attempt").await, 0);
        assert_eq!(count(database.pool(), "select count(*) from mesh.outbox").await, 1);
    }
}

/// The server answers the COMMIT of a transaction in which a statement has failed with a rollback, and no error.
#[tokio::test]
async fn a_failed_statement_that_the_handler_swallowed_is_not_taken_for_success() {
    for publishes in [false, true] {
        let database = database().await;
        let swallowing =
            Statement { failing: "select 1 / 0", times: 1, swallowed: true, publishes, entered: AtomicU32::new(0) };
        let bed = TestBed::new(service().subscribe(swallowing), database.pool().clone());
        let verdict = bed.deliver_message(fact(1, 1), false).await[0].1.clone();
        assert!(matches!(&verdict, Verdict::Retry(retry) if retry.cause == RetryCause::Failure), "{verdict:?}");
        assert_eq!(count(database.pool(), "select count(*) from mesh.inbox").await, 0);
        assert_eq!(bed.deliver_message(fact(1, 1), true).await[0].1, Verdict::Handled);
        assert_eq!(count(database.pool(), "select count(*) from mesh.outbox").await, i64::from(publishes));
    }
}
