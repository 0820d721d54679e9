//! Many deliveries in one transaction: one claim, each handler under a savepoint, one insert of their facts, one commit.
//!
//! A shortcut for first deliveries, and never a verdict of its own: what fails here is taken back without a trace, counts
//! as no attempt, and is delivered alone, where everything about it is found out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use envelope::HOPS_MAX;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use super::registry::{Prepared, PreparedBatch};
use super::{Delivery, ErasedSubscriber, Inbox, Incoming, Next, SqlInbox, Verdict};
use crate::failpoints;
use crate::failure::{Failure, is_outage};
use crate::inbox::{self, Claimant};
use crate::subscriber::Handled;
use crate::tx::{Cause, Tx};

/// Most savepoints of one transaction. A backend remembers 64 subtransactions where every snapshot of the server can see
/// them; with more, each look at a row has to search for them.
pub(crate) const PARTS_MAX: usize = 60;

/// How long a shared transaction starts handlers. What it has not come to by then is delivered alone.
const SHARED_MAX: Duration = Duration::from_secs(1);

/// One subscriber and one message that it hears.
pub(crate) struct Unit<Context = Tx> {
    pub(crate) subscriber: Arc<dyn ErasedSubscriber<Context>>,
    pub(crate) incoming: Arc<Incoming>,
    /// What the handler runs in.
    pub(crate) span: Span,
}

impl Unit {
    fn claimant(&self) -> Claimant<'_> {
        let (subscriber, key) = (self.subscriber.name(), self.incoming.key());
        Claimant { event_id: self.incoming.id(), subscriber, key }
    }
}

/// One call of a handler.
struct Part {
    /// The units that it is about.
    units: Vec<usize>,
    handler: Handler,
}

enum Handler {
    One(Box<dyn Prepared>),
    Many(Box<dyn PreparedBatch>),
}

impl<I: Inbox> Delivery<I> {
    /// Whether the delivery may share a transaction: nothing about it has to be counted, put off or kept first.
    pub(crate) fn may_share(
        &self,
        subscriber: &Arc<dyn ErasedSubscriber<I::Context>>,
        incoming: &Incoming,
        next: Next,
    ) -> bool {
        let plain = incoming.metadata().is_ok_and(|metadata| {
            metadata.hops <= HOPS_MAX && metadata.event_type.major <= subscriber.event_type().major
        });
        I::SHARES && plain && next == Next::First && !self.running.contains(incoming.id(), subscriber.name())
    }

    /// Delivers the units in one transaction. None for each that has to be delivered alone.
    pub(crate) async fn deliver_together(&self, units: Vec<Unit<I::Context>>) -> Vec<Option<Verdict>> {
        let count = units.len();
        let running: Vec<_> =
            units.iter().map(|unit| self.running.enter(unit.incoming.id(), unit.subscriber.name())).collect();
        let work = self.inbox.clone().run_together(units);
        // A task of its own, as for a single execution: nothing cancels it, and a panic ends there.
        let task = tokio::spawn(async move {
            let _running = running;
            work.await
        });
        match task.await {
            Ok(Ok(verdicts)) => verdicts,
            Ok(Err(Broken::Database(error))) if is_outage(&error) => vec![Some(self.unavailable(&error)); count],
            Ok(Err(broken)) => alone(count, &broken),
            Err(panicked) => alone(count, &panicked),
        }
    }
}

/// Why a shared transaction came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error("a handler took longer than {0:?}")]
    TimedOut(Duration),
}

fn alone(count: usize, why: &dyn std::fmt::Display) -> Vec<Option<Verdict>> {
    tracing::debug!(%why, count, "a shared transaction came to nothing; its deliveries run alone");
    vec![None; count]
}

pub(super) async fn transaction(inbox: &SqlInbox, units: &[Unit]) -> Result<Vec<Option<Verdict>>, Broken> {
    let mut tx = Tx::begin_shared(&inbox.pool, &inbox.context).await?;
    match in_transaction(&mut tx, units).await {
        Ok(verdicts) if verdicts.iter().any(Option::is_some) => {
            failpoints::hit("consume.before_commit");
            tx.commit().await?;
            Ok(verdicts)
        }
        Ok(verdicts) => {
            tx.rollback().await?;
            Ok(verdicts)
        }
        Err(broken) => {
            tx.rollback().await?;
            Err(broken)
        }
    }
}

async fn in_transaction(tx: &mut Tx, units: &[Unit]) -> Result<Vec<Option<Verdict>>, Broken> {
    let begun = Instant::now();
    let claimants: Vec<Claimant<'_>> = units.iter().map(Unit::claimant).collect();
    let claimed = inbox::claim_all(tx, &claimants).await?;
    failpoints::hit("consume.after_inbox_insert");
    tx.begin_parts().await?;
    let mut verdicts = vec![None; units.len()];
    let mut no_effects = (Vec::new(), Vec::new());
    for part in parts(units, &claimed) {
        if begun.elapsed() > SHARED_MAX {
            break;
        }
        let about = part.units.clone();
        let Some(handled) = run(tx, part, units).await? else { continue };
        for (index, handled) in about.into_iter().zip(handled) {
            if let Handled::NoEffect(reason) = handled {
                no_effects.0.push(claimants[index]);
                no_effects.1.push(reason);
            }
            verdicts[index] = Some(Verdict::from(handled));
        }
    }
    failpoints::hit("consume.after_effect_before_outbox");
    let failed = |index: &usize| claimed[*index] && verdicts[*index].is_none();
    let failed: Vec<_> = (0..units.len()).filter(failed).map(|index| claimants[index]).collect();
    if !failed.is_empty() {
        inbox::unclaim(tx, &failed).await?;
    }
    if !no_effects.0.is_empty() {
        inbox::record_no_effects(tx, &no_effects.0, &no_effects.1).await?;
    }
    Ok(verdicts)
}

/// Runs one part. None if it failed and was taken back.
async fn run(tx: &mut Tx, part: Part, units: &[Unit]) -> Result<Option<Vec<Handled>>, Broken> {
    let Some(first) = part.units.first().map(|&index| &units[index]) else { return Ok(None) };
    let name = first.subscriber.name();
    let handled = async {
        match part.handler {
            Handler::One(prepared) => {
                tx.turn_to(name, first.incoming.metadata().ok().map(Cause::from));
                prepared.run(tx).await.map(|handled| vec![handled])
            }
            Handler::Many(prepared) => {
                tx.turn_to(name, None);
                prepared.run(tx).await
            }
        }
    };
    // A handler that takes too long is left where it is, and the transaction ends with it: the other deliveries do not
    // wait for it. Nothing else of the transaction is ever left half-way.
    let timeout = first.subscriber.policy().timeout;
    let Ok(handled) = tokio::time::timeout(timeout, handled.instrument(first.span.clone())).await else {
        return Err(Broken::TimedOut(timeout));
    };
    match keep(tx, handled).await? {
        Ok(handled) => Ok(Some(handled)),
        Err(failure) => {
            tracing::debug!(subscriber = name, error = %failure, "a handler failed in a shared transaction; it runs alone");
            tx.take_back_part().await?;
            Ok(None)
        }
    }
}

/// Keeps the part of a handler that succeeded, unless a statement failed whose error the handler swallowed.
async fn keep(tx: &mut Tx, handled: Result<Vec<Handled>, Failure>) -> sqlx::Result<Result<Vec<Handled>, Failure>> {
    let Ok(handled) = handled else { return Ok(handled) };
    match tx.keep_part().await {
        Ok(()) => Ok(Ok(handled)),
        Err(error) if is_outage(&error) => Err(error),
        Err(error) => Ok(Err(error.into())),
    }
}

/// The calls to make for the claimed units. What cannot be decoded is left out, and so delivered alone.
fn parts(units: &[Unit], claimed: &[bool]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut batches: HashMap<&'static str, Vec<usize>> = HashMap::new();
    for (index, unit) in units.iter().enumerate().filter(|&(index, _)| claimed[index]) {
        if unit.subscriber.takes_batches() {
            batches.entry(unit.subscriber.name()).or_default().push(index);
        } else if let Ok(prepared) = Arc::clone(&unit.subscriber).prepare(unit.incoming.raw(), 1) {
            parts.push(Part { units: vec![index], handler: Handler::One(prepared) });
        }
    }
    parts.extend(batches.into_values().filter_map(|batch| many(units, batch)));
    parts
}

fn many(units: &[Unit], mut batch: Vec<usize>) -> Option<Part> {
    let raws: Vec<_> = batch.iter().map(|&index| units[index].incoming.raw()).collect();
    let subscriber = Arc::clone(&units[*batch.first()?].subscriber);
    let (prepared, readable) = subscriber.prepare_batch(&raws)?;
    let mut readable = readable.into_iter();
    batch.retain(|_| readable.next() == Some(true));
    Some(Part { units: batch, handler: Handler::Many(prepared) })
}
