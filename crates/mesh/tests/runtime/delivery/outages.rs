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

/// Loses its session in the middle of its work.
struct Interrupted(PassedOn);

impl Subscriber for Interrupted {
    type Event = Opened;
    const NAME: &'static str = "interrupted";

    async fn handle(&self, tx: &mut Tx, _: Received<Opened>) -> Result<Handled, Failure> {
        let lost = sqlx::query("select pg_terminate_backend(pg_backend_pid())").execute(&mut **tx).await.unwrap_err();
        match self.0 {
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
    for passed_on in [AsIs, InContext, InAnErrorOfItsOwn, AsARejection, AsWordsOnly] {
        let database = database().await;
        let bed = TestBed::new(service().subscribe(Interrupted(passed_on)), database.pool().clone());
        let verdict = bed.deliver_message(fact(1, 1), false).await[0].1.clone();
        let outage = matches!(verdict, Verdict::Retry(Retry { cause: RetryCause::Outage, .. }));
        assert!(outage, "{passed_on:?}: {verdict:?}");
        for table in ["select count(*) from mesh.delivery_attempt", "select count(*) from mesh.dead_letter"] {
            assert_eq!(count(database.pool(), table).await, 0, "{passed_on:?}");
        }
    }
}
