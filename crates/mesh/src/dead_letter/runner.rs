//! The two tasks of a replica that run letters: one follows operations at their pace, one lets go what is free.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::claim::Letter;
use super::operation::{Leased, Next};
use super::redrive::{End, Redriver};
use crate::clock::jittered;

/// How often it is looked whether there is something to do: other replicas take requests, too.
const POLL: Duration = Duration::from_secs(1);

/// The wait before a letter that somebody else has in work is looked at again, or a database that did not answer.
const AGAIN: Duration = Duration::from_millis(500);

impl Redriver {
    /// Works on operations until `soft`.
    pub(crate) async fn follow_operations(self: Arc<Self>, soft: CancellationToken) {
        // The letter whose execution counts and has no end, because of an outage and not of a crash.
        let mut counted = None;
        while !soft.is_cancelled() {
            if !self.tried("an operation", self.work_on_one(&soft, &mut counted)).await {
                self.rest(&self.operations, &soft).await;
            }
        }
    }

    /// Lets go what is free until `soft`.
    pub(crate) async fn follow_releases(self: Arc<Self>, soft: CancellationToken) {
        while !soft.is_cancelled() {
            if !self.tried("letters whose way is free", self.release(|| soft.is_cancelled())).await {
                self.rest(&self.released, &soft).await;
            }
        }
    }

    /// Whether there was something to do. An error is nothing: the next look comes after the rest.
    async fn tried(&self, what: &str, work: impl Future<Output = sqlx::Result<bool>>) -> bool {
        work.await.unwrap_or_else(|error| {
            tracing::warn!(%error, what, "the database did not answer");
            false
        })
    }

    async fn rest(&self, woken: &Notify, soft: &CancellationToken) {
        tokio::select! {
            () = tokio::time::sleep(jittered(POLL, &*self.delivery().context.clock)) => {}
            () = woken.notified() => {}
            () = soft.cancelled() => {}
        }
    }

    /// Takes an operation and works on it to its end, to ours, or until another replica has it. Returns whether there was
    /// one.
    async fn work_on_one(&self, soft: &CancellationToken, counted: &mut Option<(i64, bool)>) -> sqlx::Result<bool> {
        let owner = self.delivery().context.instance;
        let Some(leased) = Leased::take(&self.pool, owner).await? else { return Ok(false) };
        let mut pace = pace(leased.rate_per_second);
        while leased.renew(&self.pool, owner).await? {
            let Some(next) = leased.next(&self.pool).await? else {
                leased.finish(&self.pool).await?;
                break;
            };
            if soft.run_until_cancelled(pace.tick()).await.is_none() {
                leased.resign(&self.pool, owner).await?;
                break;
            }
            *counted = self.work_on(next, *counted).await;
            if counted.is_some() {
                soft.run_until_cancelled(tokio::time::sleep(AGAIN)).await;
            }
        }
        Ok(true)
    }

    /// Runs one member. Returns its letter when it has to be looked at again, with whether it counts already.
    async fn work_on(&self, next: Next, counted: Option<(i64, bool)>) -> Option<(i64, bool)> {
        let letter = Letter { id: next.letter, item: Some(next.item) };
        let is_ours = counted.filter(|(id, _)| *id == next.letter);
        let ended = match is_ours {
            None if next.is_begun => self.cut_off(letter).await,
            _ => self.run_letter(letter, is_ours.is_some_and(|(_, counted)| counted)).await,
        };
        match ended {
            Ok(End::Settled | End::Failed | End::Stays) => None,
            Ok(End::Again { counted }) => Some((next.letter, counted)),
            Err(error) => {
                tracing::warn!(%error, letter = next.letter, "the database did not answer a redrive");
                Some((next.letter, is_ours.is_some_and(|(_, counted)| counted)))
            }
        }
    }
}

fn pace(per_second: u32) -> Interval {
    let mut pace = interval(Duration::from_secs(1) / per_second.max(1));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pace
}
