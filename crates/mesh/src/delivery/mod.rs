//! One message and one subscriber to one verdict. No NATS types here: the consumer translates verdicts to acknowledgements,
//! and tests call this with messages of their own.

mod attempts;
mod execution;
mod group;
mod inbox;
mod incoming;
mod registry;
mod running;
mod sql;
mod telling;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use envelope::{DecodeError, HOPS_MAX, Metadata};

pub(crate) use attempts::Next;
pub(crate) use execution::Execution;
pub(crate) use group::{Broken, PARTS_MAX, Unit};
pub(crate) use inbox::{Begun, Ended, Inbox, Outage};
pub(crate) use incoming::Incoming;
pub(crate) use registry::{ErasedSubscriber, Prepared, Registry};
pub(crate) use sql::SqlInbox;
pub use verdict::{DeadReason, ParkReason, Retry, RetryCause, Verdict};

use crate::clock::jittered;
use crate::context::ServiceContext;
use crate::dead_letter::{DeadLetter, Letter, State};
use crate::failure::Failure;
use execution::execute;
use running::Executions;

/// The wait before a message of an unknown version is looked at again.
const NEWER_VERSION_DELAY: Duration = Duration::from_secs(5);

/// The wait before it is looked again whether a handler that took too long has ended.
const RUNNING_DELAY: Duration = Duration::from_secs(2);

/// The wait after something went away that deliveries need; the consumer probes it before it goes on.
const OUTAGE_DELAY: Duration = Duration::from_secs(1);

/// Runs deliveries against the service's memory.
#[derive(Debug, Clone)]
pub(crate) struct Delivery<I = SqlInbox> {
    pub(crate) inbox: I,
    pub(crate) context: Arc<ServiceContext>,
    /// How long a version that this build does not know may wait for a deployment before it is parked.
    newer_version_wait: Duration,
    running: Executions,
}

impl<I: Inbox> Delivery<I> {
    pub(crate) fn new(inbox: I, context: Arc<ServiceContext>, newer_version_wait: Duration) -> Self {
        Self { inbox, context, newer_version_wait, running: Executions::default() }
    }

    /// Delivers one message to one subscriber.
    ///
    /// Never cancelled half-way: the transaction runs in a task of its own. The order of the steps is the guarantee: the
    /// attempt is counted before the message is decoded, the claim, the handler and its facts are one commit, and only a
    /// verdict that is settled may be acknowledged.
    pub(crate) async fn deliver(
        &self,
        subscriber: &Arc<dyn ErasedSubscriber<I::Context>>,
        incoming: &Arc<Incoming>,
        next: &mut Next,
    ) -> Verdict {
        if self.running.contains(incoming.id(), subscriber.name()) {
            // Another one would wait for the claim of the first, with a connection of its own.
            return self.running_already();
        }
        if let Some(verdict) = self.newer_version(subscriber, incoming).await {
            return verdict;
        }
        let attempt = match self.inbox.begin(*next, incoming.id(), subscriber.name()).await {
            Ok(Begun::Attempt(attempt)) => attempt,
            Ok(Begun::Elsewhere) => return self.running_already(),
            Err(error) => return self.unavailable(&error),
        };
        let verdict = self.attempt(subscriber, incoming, attempt).await;
        *next = match &verdict {
            Verdict::Retry(Retry { cause: RetryCause::Failure | RetryCause::Running, .. }) => Next::Count,
            _ => Next::again(attempt),
        };
        verdict
    }

    /// Runs the handler for a delivery that was kept; the caller has counted the execution and keeps what does not settle.
    pub(crate) async fn redeliver(
        &self,
        subscriber: &Arc<dyn ErasedSubscriber<I::Context>>,
        incoming: &Arc<Incoming>,
        attempt: u32,
        letter: Letter,
    ) -> Ended {
        if self.running.contains(incoming.id(), subscriber.name()) {
            return Ended::Elsewhere;
        }
        execute(self, subscriber, incoming, attempt, Some(letter)).await
    }

    /// A version that this build does not know shows in the headers alone: it is put off without counting anything, and
    /// parked when no build that knows it has come within the window.
    async fn newer_version(
        &self,
        subscriber: &Arc<dyn ErasedSubscriber<I::Context>>,
        incoming: &Incoming,
    ) -> Option<Verdict> {
        let (got, known) = (incoming.metadata().ok()?.event_type.major, subscriber.event_type().major);
        if got <= known {
            return None;
        }
        if incoming.waited() < self.newer_version_wait {
            let after = jittered(NEWER_VERSION_DELAY, &*self.context.clock);
            telling::newer_version(&self.context, &**subscriber, incoming, after);
            return Some(Verdict::Retry(Retry { after, cause: RetryCause::NewerVersion }));
        }
        let error = DecodeError::NewerMajor { got, known };
        let outcome = Outcome::Parked(ParkReason::NewerVersion, error.to_string());
        Some(self.keep(subscriber.name(), incoming, 0, &outcome).await)
    }

    async fn attempt(
        &self,
        subscriber: &Arc<dyn ErasedSubscriber<I::Context>>,
        incoming: &Arc<Incoming>,
        attempt: u32,
    ) -> Verdict {
        if attempt > subscriber.policy().attempts_max {
            let detail = "every execution failed or ended the process";
            return self
                .keep(
                    subscriber.name(),
                    incoming,
                    attempt - 1,
                    &Outcome::Dead(DeadReason::AttemptsExhausted, detail.to_owned()),
                )
                .await;
        }
        let metadata = match incoming.metadata() {
            Ok(metadata) if metadata.hops > HOPS_MAX => {
                let detail = format!("{} reactions from its root", metadata.hops);
                return self
                    .keep(subscriber.name(), incoming, attempt, &Outcome::Parked(ParkReason::Loop, detail))
                    .await;
            }
            Ok(metadata) => metadata,
            Err(error) => return self.undecodable(subscriber, incoming, attempt, error).await,
        };
        let ended = execute(self, subscriber, incoming, attempt, None).await;
        self.conclude(subscriber, incoming, metadata, attempt, ended).await
    }

    async fn undecodable(
        &self,
        subscriber: &Arc<dyn ErasedSubscriber<I::Context>>,
        incoming: &Incoming,
        attempt: u32,
        error: &DecodeError,
    ) -> Verdict {
        let outcome = Outcome::Parked(ParkReason::Undecodable(error.reason()), describe(error));
        self.keep(subscriber.name(), incoming, attempt, &outcome).await
    }

    async fn conclude(
        &self,
        subscriber: &Arc<dyn ErasedSubscriber<I::Context>>,
        incoming: &Incoming,
        metadata: &Metadata,
        attempt: u32,
        ended: Ended,
    ) -> Verdict {
        let name = subscriber.name();
        match ended {
            Ended::Settled(verdict) => verdict,
            Ended::Behind(event) => {
                let detail = format!("{event} of the same key is kept as a dead letter");
                // The handler was not entered.
                self.keep(
                    name,
                    incoming,
                    attempt.saturating_sub(1),
                    &Outcome::Parked(ParkReason::Behind(event), detail),
                )
                .await
            }
            Ended::Undecodable(error) => self.undecodable(subscriber, incoming, attempt, &error).await,
            Ended::Elsewhere => self.running_already(),
            Ended::Outage(why) => self.unavailable(&why),
            Ended::Failed(Failure::Outage(error)) => self.unavailable(&format_args!("{error:#}")),
            Ended::Failed(Failure::Reject(error)) => {
                let outcome = Outcome::Dead(DeadReason::Rejected, format!("{error:#}"));
                self.keep(name, incoming, attempt, &outcome).await
            }
            Ended::Failed(failure) => {
                let error = failure.to_string();
                tracing::warn!(subscriber = name, event = %metadata.id, attempt, %error, "the handler failed");
                self.failed(subscriber, incoming, attempt, &error).await
            }
        }
    }

    async fn failed(
        &self,
        subscriber: &Arc<dyn ErasedSubscriber<I::Context>>,
        incoming: &Incoming,
        attempt: u32,
        error: &str,
    ) -> Verdict {
        let policy = subscriber.policy();
        let written = self.inbox.record_failure(incoming.id(), subscriber.name(), attempt, error).await;
        if let Err(error) = written {
            return self.unavailable(&error);
        }
        if attempt >= policy.attempts_max {
            let outcome = Outcome::Dead(DeadReason::AttemptsExhausted, error.to_owned());
            return self.keep(subscriber.name(), incoming, attempt, &outcome).await;
        }
        let after = jittered(policy.backoff.delay(attempt), &*self.context.clock);
        telling::retrying(&self.context, subscriber.name(), incoming, (attempt, policy.attempts_max), after, error);
        Verdict::Retry(Retry { after, cause: RetryCause::Failure })
    }

    /// Parks or gives up; when even that cannot be written, the message stays with the broker.
    async fn keep(&self, subscriber: &'static str, incoming: &Incoming, attempt: u32, outcome: &Outcome) -> Verdict {
        let (state, reason, detail, behind) = match outcome {
            Outcome::Parked(reason, detail) => (State::Parked, reason.code(), detail, reason.behind()),
            Outcome::Dead(reason, detail) => (State::Dead, reason.code(), detail, None),
        };
        let letter = DeadLetter {
            subscriber,
            event_id: incoming.id(),
            event_type: &incoming.event_type_text(),
            key: incoming.key(),
            correlation_id: incoming.metadata().ok().map(|metadata| metadata.correlation_id),
            state,
            reason,
            detail,
            attempts: attempt,
            behind,
            raw: incoming.raw(),
            stream_sequence: incoming.stream_sequence(),
            build: self.context.build,
        };
        match self.inbox.keep(&letter).await {
            Ok(false) => Verdict::Duplicate,
            Ok(true) => {
                telling::kept(&self.context, &letter, incoming);
                outcome.verdict()
            }
            Err(error) => self.unavailable(&error),
        }
    }

    /// Keeps a message that no subscriber can be found for because its subject cannot be read.
    pub(crate) async fn keep_unroutable(&self, incoming: &Incoming, detail: String) -> Verdict {
        let outcome = Outcome::Parked(ParkReason::Undecodable("unroutable"), detail);
        self.keep("-", incoming, 1, &outcome).await
    }

    fn running_already(&self) -> Verdict {
        let after = jittered(RUNNING_DELAY, &*self.context.clock);
        Verdict::Retry(Retry { after, cause: RetryCause::Running })
    }

    fn unavailable(&self, why: &dyn std::fmt::Display) -> Verdict {
        tracing::warn!(%why, "what a delivery needs did not answer");
        let after = jittered(OUTAGE_DELAY, &*self.context.clock);
        Verdict::Retry(Retry { after, cause: RetryCause::Outage })
    }
}

/// A delivery that ends as a dead letter, with the words that are kept.
enum Outcome {
    Parked(ParkReason, String),
    Dead(DeadReason, String),
}

impl Outcome {
    fn verdict(&self) -> Verdict {
        match self {
            Self::Parked(reason, _) => Verdict::Parked(reason.clone()),
            Self::Dead(reason, _) => Verdict::Dead(*reason),
        }
    }
}

/// An error with its causes on one line.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
