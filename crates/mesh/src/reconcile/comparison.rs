//! One comparison: which facts that were sent does the stream not hold any more, and back they go.
//!
//! A stream loses its newest messages, as a rule: a server comes back with an older copy of its store. So the newest facts
//! are looked at first, from now back to the last comparison, and further back for as long as anything is missing. What
//! is missing goes back oldest first, so that each key keeps its order.

use std::time::Duration;

use async_nats::Client;
use futures_util::{StreamExt, TryStreamExt, stream};
use sqlx::PgPool;
use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;

use super::sent::{self, Sent, Stretch};
use super::state::{self, Progress};
use super::stored::{self, Look, LookError};
use crate::broker::Broker;
use crate::failpoints;
use crate::task_lease::{self, Task, TaskLease};

/// Messages that are asked for at the same time.
const QUESTIONS: usize = 64;

/// Facts of one stretch, about: a stretch with more is followed by a shorter one.
const STRETCH_ROWS: usize = 10_000;

/// The shortest and the first stretch.
const STRETCH_MIN: Duration = Duration::from_secs(1);
const STRETCH_FIRST: Duration = Duration::from_secs(60);

/// Facts that are put back by one statement.
const PUT_BACK_ROWS: usize = 500;

/// Facts that are collected before they are put in order and put back.
const LOST_ROWS: usize = 50_000;

/// How far a comparison reaches back behind the last one: `sent_at` is taken before the commit, and a commit may wait.
const OVERLAP: Duration = Duration::from_secs(120);

/// Facts that a comparison without suspicion looks at; of more it takes a sample.
const SAMPLE_ROWS: i64 = 20_000;

/// Why a comparison ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum ComparisonError {
    #[error("the database did not answer ({0})")]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Look(#[from] LookError),
    #[error("another replica has taken over")]
    LeaseLost,
    #[error("the process is stopping")]
    Stopping,
}

/// A comparison that is running.
pub(super) struct Comparison<'a> {
    pub(super) pool: &'a PgPool,
    pub(super) broker: &'a Broker,
    pub(super) soft: &'a CancellationToken,
    pub(super) lease: TaskLease,
    pub(super) look: Look,
    /// What was sent before it has expired, in the stream or here.
    pub(super) expired: OffsetDateTime,
    /// How far back the last comparison accounts for everything.
    pub(super) verified: OffsetDateTime,
    /// Where this one begins to look back.
    pub(super) now: OffsetDateTime,
    pub(super) progress: Progress,
}

/// What became of one stretch.
#[derive(Debug, Default)]
struct Findings {
    /// Facts that were looked at.
    checked: usize,
    /// Some of them were sent before the last comparison.
    reaches_verified: bool,
    lost: Vec<Sent>,
}

impl Comparison<'_> {
    /// Compares, and puts back what is lost. `is_suspicious` looks at every fact, else at a sample of many.
    pub(super) async fn run(&mut self, is_suspicious: bool) -> Result<(), ComparisonError> {
        let recent = Stretch { from: self.verified.max(self.expired), until: self.now };
        let sampled = if is_suspicious { 1 } else { one_of(sent::count(self.pool, recent).await?) };
        let mut begin = self.oldest_lost(sampled).await?;
        if sampled > 1 && begin.is_some() {
            begin = self.oldest_lost(1).await?;
        }
        match begin {
            Some(begin) => self.put_back_from(begin).await,
            None => Ok(()),
        }
    }

    /// Looks back from now. `None` when nothing is lost, else an instant before which nothing is.
    async fn oldest_lost(&mut self, sampled: i64) -> Result<Option<OffsetDateTime>, ComparisonError> {
        self.progress = Progress { republished: self.progress.republished, ..Progress::default() };
        let overlap = self.verified - OVERLAP;
        let mut is_any_lost = false;
        let mut length = STRETCH_FIRST;
        let mut until = self.now;
        while until > self.expired {
            let stretch = Stretch { from: (until - length).max(self.expired), until };
            let found = self.look_through(stretch, sampled).await?;
            self.progress.lost += found.lost.len() as u64;
            self.report().await?;
            is_any_lost |= !found.lost.is_empty();
            until = stretch.from;
            // Older messages are there, since this stretch is: a stream loses an end of itself.
            if until <= overlap && found.reaches_verified && found.lost.is_empty() {
                break;
            }
            length = next_length(length, found.checked);
        }
        Ok(is_any_lost.then_some(until))
    }

    /// Looks through everything from an instant on, and puts back what is lost.
    async fn put_back_from(&mut self, begin: OffsetDateTime) -> Result<(), ComparisonError> {
        self.progress = Progress { republished: self.progress.republished, ..Progress::default() };
        let mut lost = Vec::new();
        let mut length = STRETCH_FIRST;
        let mut from = begin;
        while from < self.now {
            let stretch = Stretch { from, until: (from + length).min(self.now) };
            let found = self.look_through(stretch, 1).await?;
            self.progress.lost += found.lost.len() as u64;
            self.report().await?;
            lost.extend(found.lost);
            if lost.len() >= LOST_ROWS {
                self.put_back(std::mem::take(&mut lost)).await?;
            }
            from = stretch.until;
            length = next_length(length, found.checked);
        }
        self.put_back(lost).await
    }

    /// Puts facts back, each key's in its order.
    async fn put_back(&mut self, mut lost: Vec<Sent>) -> Result<(), ComparisonError> {
        lost.sort_unstable_by_key(|sent| (sent.key_version, sent.sent_at));
        for page in lost.chunks(PUT_BACK_ROWS) {
            self.go_on().await?;
            failpoints::hit("reconcile.before_republish");
            let moved = sent::put_back(self.pool, self.lease, self.look.created, page).await?;
            self.progress.republished += moved;
            self.report().await?;
        }
        Ok(())
    }

    /// Asks the stream for the facts of a stretch.
    async fn look_through(&mut self, stretch: Stretch, sampled: i64) -> Result<Findings, ComparisonError> {
        self.go_on().await?;
        let facts = sent::within(self.pool, stretch, sampled).await?;
        if facts.is_empty() {
            return Ok(Findings::default());
        }
        // Looked at after the facts were read: all of them were stored by then.
        let look = stored::look(self.broker).await?;
        let checked = facts.len();
        let reaches_verified = facts.iter().any(|fact| fact.sent_at < self.verified);
        let lost = lost(self.broker.connection().client, look, facts).await?;
        self.progress.checked += checked as u64;
        Ok(Findings { checked, reaches_verified, lost })
    }

    /// Whether this replica still is the one to do it.
    async fn go_on(&self) -> Result<(), ComparisonError> {
        if self.soft.is_cancelled() {
            return Err(ComparisonError::Stopping);
        }
        match task_lease::hold(self.pool, Task::Reconcile, self.lease.owner).await? {
            Some(lease) if lease == self.lease => Ok(()),
            _ => Err(ComparisonError::LeaseLost),
        }
    }

    async fn report(&self) -> Result<(), ComparisonError> {
        Ok(state::progress(self.pool, self.progress).await?)
    }
}

/// Those of the facts that the stream does not hold any more.
async fn lost(client: Client, look: Look, facts: Vec<Sent>) -> Result<Vec<Sent>, LookError> {
    let questions = stream::iter(facts).map(|fact| {
        let client = client.clone();
        async move { Ok::<_, LookError>((!is_held(client, look, fact).await?).then_some(fact)) }
    });
    let answers: Vec<Option<Sent>> = questions.buffer_unordered(QUESTIONS).try_collect().await?;
    Ok(answers.into_iter().flatten().collect())
}

/// Whether the stream holds a fact where it said it does, or has let it expire.
async fn is_held(client: Client, look: Look, fact: Sent) -> Result<bool, LookError> {
    match judge(look, &fact) {
        Some(held) => Ok(held),
        None => Ok(stored::id_at(&client, fact.stream_sequence).await? == Some(fact.event_id)),
    }
}

/// What the state of the stream alone says about a fact; `None` when its message has to be looked at.
fn judge(look: Look, fact: &Sent) -> Option<bool> {
    if fact.stream_sequence > look.last_sequence {
        return Some(false);
    }
    if fact.stream_sequence < look.first_sequence {
        // In another stream the number says nothing.
        return Some(fact.stream_created == look.created);
    }
    None
}

/// Of so many facts in a row one is looked at.
fn one_of(facts: i64) -> i64 {
    (facts / SAMPLE_ROWS).max(1)
}

/// The length of the next stretch, after one of `length` had so many facts.
fn next_length(length: Duration, facts: usize) -> Duration {
    if facts > STRETCH_ROWS {
        (length / 2).max(STRETCH_MIN)
    } else if facts < STRETCH_ROWS / 4 {
        length.saturating_mul(2)
    } else {
        length
    }
}

#[cfg(test)]
mod tests;
