//! Deliveries of a service without a database: a claim, the handler, a settlement.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::bucket::{Bucket, Found, KvError, Lifetime};
use super::entry::{self, Begin, Claim, Entry, FailedAttempt, State};
use super::letters::Letters;
use super::{DEAD, INBOX, Kv, bucket_name};
use crate::broker::Broker;
use crate::context::ServiceContext;
use crate::dead_letter::DeadLetter;
use crate::delivery::{Begun, Ended, Execution, Inbox, Next, Outage, Prepared, Verdict};
use crate::failpoints;
use crate::subscriber::Handled;

/// Writes that are tried again because somebody else wrote first. More than one such meeting is rare.
const RACES_MAX: u32 = 5;

/// A delivery by its fact and its subscriber.
type Key = (Uuid, &'static str);

/// The buckets `inbox_<service>` and `dead_<service>`.
#[derive(Debug, Clone)]
pub(crate) struct KvInbox {
    broker: Arc<Broker>,
    context: Arc<ServiceContext>,
    entries: Bucket,
    letters: Letters,
    /// How long an execution may take, of whatever subscriber: a claim that stands longer was left behind.
    execution_max: Duration,
    memory: Arc<Mutex<Memory>>,
}

/// What this process knows beside the buckets.
#[derive(Debug, Default)]
struct Memory {
    /// Claims of other processes, and when they were first seen at their revision. No two clocks are compared.
    foreign_claims: HashMap<Key, (u64, Instant)>,
    /// Effects that happened and could not be recorded yet: their handlers must not run again.
    unrecorded: HashMap<Key, Handled>,
}

impl KvInbox {
    pub(crate) fn new(broker: Arc<Broker>, context: Arc<ServiceContext>, execution_max: Duration) -> Self {
        let bucket = |name| Bucket::new(Arc::clone(&broker), &bucket_name(name, context.name));
        let (entries, letters) = (bucket(INBOX), Letters::new(bucket(DEAD)));
        Self { broker, context, entries, letters, execution_max, memory: Arc::default() }
    }

    pub(super) fn letters(&self) -> &Letters {
        &self.letters
    }

    /// Whether the claim of another process has stood for longer than an execution takes.
    fn lapsed(&self, key: Key, found: Option<&Found<Entry>>) -> bool {
        let mut memory = self.memory();
        let Some(found) = found.filter(|found| self.is_foreign_claim(&found.value)) else {
            memory.foreign_claims.remove(&key);
            return false;
        };
        let now = Instant::now();
        let seen = memory.foreign_claims.entry(key).or_insert((found.revision, now));
        if seen.0 != found.revision {
            *seen = (found.revision, now);
        }
        now - seen.1 >= self.execution_max
    }

    fn is_foreign_claim(&self, entry: &Entry) -> bool {
        entry.state == State::Claimed && entry.instance != self.context.instance
    }

    /// Lets `change` replace the entry until nobody else was faster. It answers no entry when there is nothing to write.
    async fn change<T>(
        &self,
        key: &str,
        mut change: impl FnMut(Option<&Entry>) -> (Option<Entry>, T),
    ) -> Result<T, KvError> {
        let mut races = 0;
        loop {
            let found = self.entries.get::<Entry>(key).await?;
            let (entry, answer) = change(found.as_ref().map(|found| &found.value));
            let Some(entry) = entry else { return Ok(answer) };
            match self.write(key, &entry, found.map_or(0, |found| found.revision)).await {
                Err(KvError::Conflict { .. }) if races < RACES_MAX => races += 1,
                written => return written.map(|_| answer),
            }
        }
    }

    /// What is concluded expires with the bucket's age; what is not must not.
    async fn write(&self, key: &str, entry: &Entry, revision: u64) -> Result<u64, KvError> {
        let lives = if entry.is_concluded() { Lifetime::OfBucket } else { Lifetime::Unlimited };
        match revision {
            0 => self.entries.create(key, entry, lives).await,
            revision => self.entries.update(key, entry, revision, lives).await,
        }
    }

    async fn claim(&self, execution: &Execution) -> Result<Result<(), Ended>, KvError> {
        let (event_id, subscriber) = (execution.incoming.id(), execution.name);
        let key = entry_key(event_id, subscriber);
        let waits_behind = self.letters.last_of_key(subscriber, execution.incoming.key()).await?;
        // A first delivery finds nothing, so that its claim is tried before a look.
        let mut found = None;
        if execution.attempt > 1 || waits_behind.is_some() {
            found = self.entries.get::<Entry>(&key).await?;
        }
        for _ in 0..RACES_MAX {
            let claim =
                entry::claim(found.as_ref().map(|found| &found.value), execution.attempt, self.context.instance);
            match (claim, waits_behind) {
                (Claim::Duplicate, _) => return Ok(Err(Ended::Settled(Verdict::Duplicate))),
                // The process ended between the letter and its mark.
                (_, Some(event)) if event == event_id => {
                    self.mark_kept(&key, execution.attempt).await?;
                    return Ok(Err(Ended::Settled(Verdict::Duplicate)));
                }
                (_, Some(event)) => return Ok(Err(Ended::Behind(event))),
                (Claim::Ours, None) => return Ok(Ok(())),
                (Claim::Recount, None) => return Ok(Err(Ended::Elsewhere)),
                (Claim::Write(entry), None) => match self.write(&key, &entry, 0).await {
                    Ok(_) => return Ok(Ok(())),
                    Err(KvError::Conflict { .. }) => found = self.entries.get(&key).await?,
                    Err(error) => return Err(error),
                },
            }
        }
        Ok(Err(Ended::Elsewhere))
    }

    /// Records what the handler did. What happened has happened, whatever was written about it meanwhile.
    async fn settle(&self, execution: &Execution, handled: Handled) -> Ended {
        let key = (execution.incoming.id(), execution.name);
        let instance = self.context.instance;
        let no_effect = if let Handled::NoEffect(reason) = handled { Some(reason) } else { None };
        let entry = entry_key(key.0, key.1);
        let settled = self.change(&entry, |found| match found {
            Some(entry) if entry.is_concluded() => (None, entry.state == State::Settled),
            _ => (Some(Entry::settled(execution.attempt, instance, no_effect)), true),
        });
        match settled.await {
            Ok(is_settled) => {
                self.memory().unrecorded.remove(&key);
                if !is_settled {
                    tracing::warn!(subscriber = key.1, event = %key.0, "handled after it was kept as a dead letter");
                }
                Ended::Settled(if is_settled { handled.into() } else { Verdict::Duplicate })
            }
            Err(error) => {
                self.memory().unrecorded.insert(key, handled);
                Ended::Outage(error.to_string())
            }
        }
    }

    async fn mark_kept(&self, key: &str, attempt: u32) -> Result<bool, KvError> {
        let instance = self.context.instance;
        self.change(key, |found| match found {
            Some(entry) if entry.is_concluded() => (None, entry.state == State::Kept),
            _ => (Some(Entry::kept(attempt, instance)), true),
        })
        .await
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        // The maps are whole between any two statements, so a panic elsewhere does not spoil them.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inbox for KvInbox {
    type Context = Kv;

    async fn begin(&self, next: Next, event_id: Uuid, subscriber: &'static str) -> Result<Begun, Outage> {
        if next == Next::First || self.memory().unrecorded.contains_key(&(event_id, subscriber)) {
            return Ok(Begun::Attempt(1));
        }
        let key = entry_key(event_id, subscriber);
        for _ in 0..RACES_MAX {
            let found = self.entries.get::<Entry>(&key).await?;
            let lapsed = self.lapsed((event_id, subscriber), found.as_ref());
            match entry::begin(found.as_ref().map(|found| &found.value), next, self.context.instance, lapsed) {
                Begin::Go(attempt) => return Ok(Begun::Attempt(attempt)),
                Begin::Elsewhere => return Ok(Begun::Elsewhere),
                Begin::Write(entry) => match self.write(&key, &entry, found.map_or(0, |found| found.revision)).await {
                    Ok(_) => return Ok(Begun::Attempt(entry.attempt)),
                    Err(KvError::Conflict { .. }) => {}
                    Err(error) => return Err(error.into()),
                },
            }
        }
        Ok(Begun::Elsewhere)
    }

    async fn record_failure(
        &self,
        event_id: Uuid,
        subscriber: &'static str,
        attempt: u32,
        error: &str,
    ) -> Result<(), Outage> {
        let (at, instance) = (self.context.clock.now(), self.context.instance);
        let failure = FailedAttempt { attempt, at, error: error.to_owned() };
        let key = entry_key(event_id, subscriber);
        Ok(self.change(&key, |found| (entry::failed(found, &failure, instance), ())).await?)
    }

    async fn keep(&self, letter: &DeadLetter<'_>) -> Result<bool, Outage> {
        let key = entry_key(letter.event_id, letter.subscriber);
        let found = self.entries.get::<Entry>(&key).await?;
        if found.as_ref().is_some_and(|found| found.value.is_concluded()) {
            return Ok(false);
        }
        // The letter comes first: what is marked as kept is never looked at again.
        let history = found.map(|found| found.value.history).unwrap_or_default();
        self.letters.keep(letter, history).await?;
        failpoints::hit("dead.after_insert_before_term");
        let kept = self.mark_kept(&key, letter.attempts).await?;
        if !kept {
            self.letters.take_back(letter).await?;
        }
        Ok(kept)
    }

    async fn run(self, execution: Execution, handler: Box<dyn Prepared<Kv>>) -> Ended {
        let key = (execution.incoming.id(), execution.name);
        let unrecorded = self.memory().unrecorded.get(&key).copied();
        if let Some(handled) = unrecorded {
            return self.settle(&execution, handled).await;
        }
        match self.claim(&execution).await {
            Ok(Ok(())) => {}
            Ok(Err(ended)) => return ended,
            Err(error) => return Ended::Outage(error.to_string()),
        }
        failpoints::hit("consume.after_inbox_insert");
        let mut kv = Kv::new(Arc::clone(&self.broker), Arc::clone(&self.context));
        match handler.run(&mut kv).await {
            Ok(handled) => {
                failpoints::hit("consume.before_commit");
                self.settle(&execution, handled).await
            }
            Err(failure) => Ended::Failed(failure),
        }
    }

    async fn probe(&self) -> Result<(), Outage> {
        // Neither is there; that it is told is the answer.
        self.entries.get::<Entry>("probe").await?;
        self.letters.last_of_key("probe", "probe").await?;
        Ok(())
    }
}

impl From<KvError> for Outage {
    fn from(error: KvError) -> Self {
        Self(error.to_string())
    }
}

fn entry_key(event_id: Uuid, subscriber: &str) -> String {
    format!("{subscriber}.{event_id}")
}
