//! One letter, run again: the failed handler and no other, with the original bytes, through the decoding, the claim and
//! the commit of every delivery.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::anyhow;
use envelope::{RawMessage, Timestamp};
use sqlx::PgPool;
use tokio::sync::Notify;

use super::claim::Letter;
use super::record::{Begun, Failed, Kept};
use super::signature::signature;
use crate::clock::jittered;
use crate::delivery::{DeadReason, Delivery, Ended, ErasedSubscriber, Incoming, ParkReason, Registry, Verdict};
use crate::failure::Failure;
use crate::ops::OpsEvent;
use crate::subscriber::Policy;
use crate::telemetry::metrics;

/// Runs letters again: those of operations, and those that waited behind one that is out of the way.
pub(crate) struct Redriver {
    pub(super) pool: PgPool,
    registry: Registry,
    delivery: Delivery,
    /// Raised when an operation has been written down.
    pub(super) operations: Notify,
    /// Raised when a letter has gone out of the way of others.
    pub(super) released: Notify,
}

/// What became of one letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It is settled.
    Settled,
    /// It stays, with its new failure.
    Failed,
    /// It was not run: an earlier letter has to go first, or nobody hears it.
    Stays,
    /// It has to be looked at again; `counted` when this execution counts already.
    Again { counted: bool },
}

impl Redriver {
    pub(crate) fn new(pool: PgPool, registry: Registry, delivery: Delivery) -> Arc<Self> {
        Arc::new(Self { pool, registry, delivery, operations: Notify::new(), released: Notify::new() })
    }

    /// The subscribers of this build.
    pub(crate) fn subscribers(&self) -> HashSet<&'static str> {
        self.registry.iter().map(|subscriber| subscriber.name()).collect()
    }

    /// There may be something to do.
    pub(crate) fn wake(&self) {
        self.operations.notify_one();
        self.released.notify_one();
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.registry.iter().map(|subscriber| subscriber.name().to_owned()).collect()
    }

    pub(super) fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// Runs a letter, if it can be run now.
    pub(super) async fn run_letter(&self, letter: Letter, counted: bool) -> sqlx::Result<End> {
        let kept = match letter.begin(&self.pool, &self.names(), counted).await? {
            Begun::Kept(kept) => *kept,
            Begun::Gone => {
                letter.conclude(&self.pool, "settled", None).await?;
                return Ok(End::Settled);
            }
            Begun::Waits(event) => return self.waits(letter, &event.to_string()).await,
            Begun::Unheard(name) => {
                let detail = format!("{} has no subscriber `{name}`", self.delivery.context.build);
                letter.conclude(&self.pool, "refused", Some(&detail)).await?;
                return Ok(End::Stays);
            }
            Begun::Elsewhere => return Ok(End::Again { counted }),
        };
        let named = self.registry.iter().find(|subscriber| subscriber.name() == kept.subscriber);
        // `begin` takes letters of our own subscribers only.
        let Some(subscriber) = named else { return Ok(End::Stays) };
        let (name, policy) = (subscriber.name(), subscriber.policy());
        let refusal = match incoming(&kept) {
            // Nobody looks on while it goes on by itself, so it must not end one process after the other.
            Ok(_) if is_spent(&kept, policy) => Refusal::Failed(anyhow!(SPENT).into()),
            Ok(incoming) => return self.execute(letter, &kept, subscriber, &incoming).await,
            Err(error) => Refusal::Parked(ParkReason::Undecodable("malformed_headers"), error.to_string()),
        };
        self.failed(letter, &kept, (name, policy), refusal).await
    }

    async fn execute(
        &self,
        letter: Letter,
        kept: &Kept,
        subscriber: &Arc<dyn ErasedSubscriber>,
        incoming: &Arc<Incoming>,
    ) -> sqlx::Result<End> {
        let attempt = kept.attempts.unsigned_abs();
        match self.delivery.redeliver(subscriber, incoming, attempt, letter).await {
            Ended::Settled(Verdict::Duplicate) => {
                letter.remove_settled(&self.pool, incoming.id()).await?;
                letter.conclude(&self.pool, "settled", None).await?;
                Ok(End::Settled)
            }
            Ended::Settled(verdict) => {
                report(letter, kept, subscriber.name(), &verdict);
                let operation = letter.item.map(|item| item.operation_id);
                self.tell(OpsEvent::redriven(subscriber.name(), kept.event_id, operation));
                self.released.notify_one();
                Ok(End::Settled)
            }
            Ended::Behind(event) => self.waits(letter, &event.to_string()).await,
            Ended::Elsewhere => Ok(End::Again { counted: true }),
            Ended::Outage(why) => Ok(outage(letter, &why)),
            Ended::Failed(Failure::Outage(error)) => Ok(outage(letter, &format_args!("{error:#}"))),
            Ended::Undecodable(error) => {
                let reason =
                    if error.is_newer() { ParkReason::NewerVersion } else { ParkReason::Undecodable(error.reason()) };
                let refusal = Refusal::Parked(reason, crate::delivery::describe(&error));
                self.failed(letter, kept, (subscriber.name(), subscriber.policy()), refusal).await
            }
            Ended::Failed(failure) => {
                self.failed(letter, kept, (subscriber.name(), subscriber.policy()), Refusal::Failed(failure)).await
            }
        }
    }

    async fn waits(&self, letter: Letter, event: &str) -> sqlx::Result<End> {
        let detail = format!("{event} of the same key is still kept");
        letter.conclude(&self.pool, "waits", Some(&detail)).await?;
        Ok(End::Stays)
    }

    async fn failed(
        &self,
        letter: Letter,
        kept: &Kept,
        (name, policy): (&'static str, Policy),
        refusal: Refusal,
    ) -> sqlx::Result<End> {
        let mut failed = refusal.as_kept(name, &kept.reason, kept.attempts, policy);
        failed.retry_after = failed.retry_after.map(|after| jittered(after, &*self.delivery.context.clock));
        tracing::warn!(
            letter = letter.id,
            subscriber = name,
            event = %kept.event_id,
            attempt = kept.attempts,
            reason = failed.reason,
            error = failed.detail,
            "a dead letter failed again"
        );
        metrics::redrive_failed(name);
        let is_recorded = letter.fail(&self.pool, &failed, self.delivery.context.build).await?;
        let operation = letter.item.map(|item| item.operation_id);
        self.tell(OpsEvent::redrive_failed(name, kept.event_id, operation, &failed.detail));
        Ok(if is_recorded { End::Failed } else { End::Again { counted: true } })
    }

    fn tell(&self, event: OpsEvent) {
        let context = &self.delivery.context;
        context.ops.emit(context.clock.now(), event);
    }

    /// Writes down that the process that ran the letter has ended in the middle. Nothing is lost by it: its transaction is
    /// gone with it.
    pub(super) async fn cut_off(&self, letter: Letter) -> sqlx::Result<End> {
        let error = "the process ended in the middle of it".to_owned();
        let signature = signature("-", &error);
        let reason = DeadReason::AttemptsExhausted.code();
        let failed = Failed { state: "dead", reason, detail: error, retry_after: None, signature };
        if letter.fail(&self.pool, &failed, self.delivery.context.build).await? {
            return Ok(End::Failed);
        }
        match letter.begin(&self.pool, &self.names(), true).await? {
            Begun::Gone => {
                letter.conclude(&self.pool, "settled", None).await?;
                Ok(End::Settled)
            }
            _ => Ok(End::Again { counted: true }),
        }
    }
}

/// Nothing can be said about the letter: it is looked at again, and the execution that counts is this one.
fn outage(letter: Letter, why: &dyn std::fmt::Display) -> End {
    tracing::warn!(%why, letter = letter.id, "what a redrive needs did not answer");
    End::Again { counted: true }
}

/// Why an execution did not settle its letter.
#[derive(Debug)]
enum Refusal {
    Parked(ParkReason, String),
    Failed(Failure),
}

impl Refusal {
    /// What the letter says from now on. One that was kept only because of another gets the attempts of any delivery; one
    /// that was given up waits for a person again.
    fn as_kept(&self, subscriber: &str, reason_before: &str, attempts: i32, policy: Policy) -> Failed {
        let attempts = attempts.unsigned_abs();
        let (state, reason, detail, retry_after) = match self {
            Self::Parked(reason, detail) => ("parked", reason.code(), detail.clone(), None),
            Self::Failed(Failure::Reject(error)) => ("dead", DeadReason::Rejected.code(), format!("{error:#}"), None),
            Self::Failed(failure) if reason_before == BEHIND && attempts < policy.attempts_max => {
                ("parked", BEHIND, failure.to_string(), Some(policy.backoff.delay(attempts)))
            }
            Self::Failed(failure) => ("dead", DeadReason::AttemptsExhausted.code(), failure.to_string(), None),
        };
        let signature = signature(subscriber, &detail);
        Failed { state, reason, detail, retry_after, signature }
    }
}

/// The reason of what was kept only because of an earlier letter of its key.
pub(super) const BEHIND: &str = "behind";

const SPENT: &str = "every execution failed or ended the process";

/// Whether a letter that was kept only because of another has used up the attempts of a delivery.
fn is_spent(kept: &Kept, policy: Policy) -> bool {
    kept.reason == BEHIND && kept.attempts.unsigned_abs() > policy.attempts_max
}

/// The message as it was received.
fn incoming(kept: &Kept) -> serde_json::Result<Arc<Incoming>> {
    let headers = serde_json::from_str(&kept.headers)?;
    let raw = RawMessage { subject: kept.subject.clone(), headers, body: kept.payload.clone() };
    let stored_at = Timestamp::from_offset(kept.kept_at);
    Ok(Arc::new(Incoming::new(raw, kept.stream_sequence.unsigned_abs(), stored_at, true)))
}

fn report(letter: Letter, kept: &Kept, subscriber: &'static str, verdict: &Verdict) {
    metrics::redriven(subscriber);
    if let Verdict::Compensated(action) = verdict {
        metrics::compensated(action);
    }
    tracing::info!(
        letter = letter.id,
        operation = letter.item.map(|item| item.operation_id.to_string()).unwrap_or_default(),
        verdict = verdict.label(),
        detail = verdict.detail(),
        subscriber,
        event = %kept.event_id,
        key = kept.key,
        attempt = kept.attempts,
        "redriven"
    );
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn kept(refusal: &Refusal, before: &str, attempts: i32) -> (&'static str, &'static str, Option<Duration>) {
        let failed = refusal.as_kept("charge", before, attempts, Policy::default());
        (failed.state, failed.reason, failed.retry_after)
    }

    #[test]
    fn what_waited_behind_another_has_the_attempts_of_any_delivery() {
        let failed = Refusal::Failed(Failure::Retry(anyhow!("no")));
        assert_eq!(kept(&failed, "behind", 1), ("parked", "behind", Some(Duration::from_millis(250))));
        assert_eq!(kept(&failed, "behind", 3), ("parked", "behind", Some(Duration::from_secs(1))));
        assert_eq!(kept(&failed, "behind", 10), ("dead", "attempts_exhausted", None));
        assert_eq!(kept(&Refusal::Failed(Failure::Reject(anyhow!("no"))), "behind", 1), ("dead", "rejected", None));
    }

    #[test]
    fn what_was_given_up_waits_for_a_person_again_and_says_what_is_wrong_now() {
        let failed = Refusal::Failed(Failure::Conflict(anyhow!("no")));
        assert_eq!(kept(&failed, "rejected", 2), ("dead", "attempts_exhausted", None));
        let unread = Refusal::Parked(ParkReason::Undecodable("bad_body"), "no".to_owned());
        assert_eq!(kept(&unread, "newer_version", 1), ("parked", "bad_body", None));
    }
}
