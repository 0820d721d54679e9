//! Subscribers that break a promise each, in a way that a test of their effect alone does not see.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use mesh::{BatchSubscriber, Failure, Handled, OrReject, Received, Subscriber, Tx};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::probe::{Answered, Opened};

/// What is wrong with the handler.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The effect carries an id that is drawn.
    DrawnId,
    /// The effect depends on what the process handled before.
    Memory(Arc<AtomicI64>),
    /// The effect is written over a connection of its own.
    OwnConnection(PgPool),
    /// The effect is committed ahead of the fact.
    EarlyCommit,
    /// A failed statement is taken for success.
    SwallowedError,
    /// Any error is taken for a reason to give up.
    RejectedError,
    /// Nothing is done.
    Idle,
}

/// Reacts to [`Opened`], wrongly.
#[derive(Debug, Clone)]
pub(crate) struct Broken(pub(crate) Fault);

async fn insert(connection: &mut PgConnection, event_id: Uuid, key: Uuid, n: i64) -> sqlx::Result<()> {
    sqlx::query("insert into effect (event_id, key, n) values ($1, $2, $3)")
        .bind(event_id)
        .bind(key)
        .bind(n)
        .execute(connection)
        .await?;
    Ok(())
}

impl Subscriber for Broken {
    type Event = Opened;
    const NAME: &'static str = "broken";

    async fn handle(&self, tx: &mut Tx, received: Received<Opened>) -> Result<Handled, Failure> {
        let (Opened { id, n }, event_id) = (received.event, received.metadata.id);
        let count = i64::from(n);
        match &self.0 {
            #[expect(clippy::disallowed_methods, reason = "the mistake that is to be caught")]
            Fault::DrawnId => insert(tx, event_id, Uuid::now_v7(), count).await?,
            Fault::Memory(handled) => insert(tx, event_id, id, handled.fetch_add(1, Ordering::Relaxed)).await?,
            Fault::OwnConnection(pool) => {
                let mut own = pool.acquire().await?;
                sqlx::query("delete from effect where event_id = $1").bind(event_id).execute(&mut *own).await?;
                insert(&mut own, event_id, id, count).await?;
            }
            Fault::EarlyCommit => {
                insert(tx, event_id, id, count).await?;
                sqlx::raw_sql("commit; begin").execute(&mut **tx).await?;
            }
            Fault::SwallowedError => {
                let _ = insert(tx, event_id, id, count).await;
            }
            Fault::RejectedError => insert(tx, event_id, id, count).await.or_reject()?,
            Fault::Idle => return Ok(Handled::NoEffect("idle")),
        }
        tx.publish(&Answered { id, n })?;
        Ok(Handled::Effect)
    }
}

/// Counts and answers many facts at once, with ids that follow from each fact, or from the batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountOpened {
    pub(crate) derives: bool,
}

impl BatchSubscriber for CountOpened {
    type Event = Opened;
    const NAME: &'static str = "count-opened";

    async fn handle(&self, tx: &mut Tx, batch: &[Received<Opened>]) -> Result<Vec<Handled>, Failure> {
        let ids: Vec<Uuid> = batch
            .iter()
            .map(|received| if self.derives { tx.derive_id_for(received, "count") } else { tx.derive_id("count") })
            .collect();
        let keys: Vec<Uuid> = batch.iter().map(|received| received.event.id).collect();
        sqlx::query("insert into effect (event_id, key, n) select *, 1 from unnest($1::uuid[], $2::uuid[])")
            .bind(&ids)
            .bind(&keys)
            .execute(&mut **tx)
            .await?;
        for received in batch {
            tx.publish_for(received, &Answered { id: received.event.id, n: received.event.n })?;
        }
        Ok(vec![Handled::Effect; batch.len()])
    }
}

/// Two subscribers that differ in name from one that conforms.
macro_rules! named {
    ($type:ident, $name:literal) => {
        #[derive(Debug)]
        pub(crate) struct $type;

        impl Subscriber for $type {
            type Event = Opened;
            const NAME: &'static str = $name;

            async fn handle(&self, tx: &mut Tx, received: Received<Opened>) -> Result<Handled, Failure> {
                let Opened { id, n } = received.event;
                insert(tx, received.metadata.id, id, i64::from(n)).await?;
                tx.publish(&Answered { id, n })?;
                Ok(Handled::Effect)
            }
        }
    };
}

named!(Silent, "silent");
named!(Unfiltered, "unfiltered");
named!(Undeclared, "undeclared");
named!(BrokenName, "Broken_Name");
