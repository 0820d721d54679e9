//! The database goes away under a handler: no attempt is used up, whatever the handler makes of the error.

use mesh::testing::TestBed;
use mesh::{Failure, Handled, OrReject, Received, Retry, RetryCause, Subscriber, Tx, Verdict};

use super::fact;
use crate::probe::{Opened, service};
use crate::world::{count, database};

/// How the handler passes on that its session was ended.
#[derive(Debug, Clone, Copy)]
enum PassedOn {
    AsIs,
    InContext,
    InAnErrorOfItsOwn,
    AsARejection,
    AsWordsOnly,
}

#[derive(Debug, thiserror::Error)]
#[error("the account could not be read")]
struct OwnError(#[source] sqlx::Error);

/// Meets an outage in the middle of its work.
struct Interrupted {
    outage: &'static str,
    passed_on: PassedOn,
}

const SESSION_ENDED: &str = "select pg_terminate_backend(pg_backend_pid())";

/// Leaves a session in which the transaction can be rolled back.
const CANNOT_CONNECT_NOW: &str = "do $$ begin raise exception 'starting up' using errcode = '57P03'; end $$";

impl Subscriber for Interrupted {
    type Event = Opened;
    const NAME: &'static str = "interrupted";

    async fn handle(&self, tx: &mut Tx, _: Received<Opened>) -> Result<Handled, Failure> {
        let lost = sqlx::raw_sql(self.outage).execute(&mut **tx).await.unwrap_err();
        match self.passed_on {
            PassedOn::AsIs => Err(lost)?,
            PassedOn::InContext => Err(anyhow::Error::from(lost).context("read the account"))?,
            PassedOn::InAnErrorOfItsOwn => Err(OwnError(lost))?,
            PassedOn::AsARejection => Err(OwnError(lost)).or_reject()?,
            PassedOn::AsWordsOnly => Err(anyhow::anyhow!("it did not work: {lost}"))?,
        }
        Ok(Handled::Effect)
    }
}

#[tokio::test]
async fn an_outage_uses_up_no_attempt() {
    use PassedOn::{AsARejection, AsIs, AsWordsOnly, InAnErrorOfItsOwn, InContext};
    let recognisable = [AsIs, InContext, InAnErrorOfItsOwn, AsARejection];
    let cases =
        recognisable.into_iter().flat_map(|passed_on| [(SESSION_ENDED, passed_on), (CANNOT_CONNECT_NOW, passed_on)]);
    // Words alone say nothing, but a transaction that cannot be rolled back does.
    for (outage, passed_on) in cases.chain([(SESSION_ENDED, AsWordsOnly)]) {
        let database = database().await;
        let bed = TestBed::new(service().subscribe(Interrupted { outage, passed_on }), database.pool().clone());
        let verdict = bed.deliver_message(fact(1, 1), false).await[0].1.clone();
        let is_outage = matches!(verdict, Verdict::Retry(Retry { cause: RetryCause::Outage, .. }));
        assert!(is_outage, "{passed_on:?} of {outage}: {verdict:?}");
        for table in ["select count(*) from mesh.delivery_attempt", "select count(*) from mesh.dead_letter"] {
            assert_eq!(count(database.pool(), table).await, 0, "{passed_on:?} of {outage}");
        }
    }
}
