//! Each statement of a handling fails in turn: nothing of it stays, and nothing takes the failure for success.

use envelope::{RawMessage, peek};
use uuid::Uuid;

use super::repeats::Handling;
use super::trial::{Trial, is_handled};
use super::wire::Fault;
use super::{Outcome, Rule};
use crate::delivery::{DeadReason, RetryCause, Verdict};

/// What is done to a statement that has run: the handler hears of an error, or of nothing any more.
const FAULTS: [Fault; 2] = [Fault::Error, Fault::Cut];

pub(super) async fn check<G>(trial: &Trial<G>, messages: &[RawMessage], handled: &Handling) -> Outcome {
    for (index, message) in messages.iter().enumerate() {
        let commit = handled.statements[index];
        for statement in 1..commit {
            for fault in FAULTS {
                fail(trial, message, statement, fault).await?;
            }
        }
        fail_commit(trial, message, commit).await?;
    }
    match handled.effect.difference_anew(&trial.snapshot().await?) {
        Some(difference) => trial.broken(Rule::Derived, difference),
        None => Ok(()),
    }
}

async fn fail<G>(trial: &Trial<G>, message: &RawMessage, statement: usize, fault: Fault) -> Outcome {
    let before = trial.snapshot().await?;
    trial.wire.arm(statement, fault);
    let verdict = trial.deliver(message, false).await;
    let Some(failed) = trial.wire.take_fired() else {
        let seen = format!("there was no statement {statement} this time, and the handling ended as {verdict:?}");
        return trial.broken(Rule::Derived, seen);
    };
    let failed = format!("statement {statement} `{failed}` failed ({fault})");
    if let Some(difference) = before.difference(&trial.snapshot().await?) {
        return trial.broken(Rule::Whole, format!("{failed} and left behind:\n{difference}"));
    }
    let attempts = forget(trial, message).await?;
    let as_it_should = match (&verdict, fault) {
        (Verdict::Retry(retry), Fault::Error) => retry.cause == RetryCause::Failure && attempts == 1,
        (Verdict::Dead(DeadReason::AttemptsExhausted), Fault::Error) => true,
        // Nobody can tell what became of it: no attempt is used up.
        (Verdict::Retry(retry), Fault::Cut) => retry.cause == RetryCause::Outage && attempts == 0,
        _ => false,
    };
    if !as_it_should {
        let seen = format!("{failed}, and the handling ended as {verdict:?} with {attempts} attempts used up");
        return trial.broken(Rule::Whole, seen);
    }
    Ok(())
}

/// The commit happens and nobody hears of it: the ordinary duplicate.
async fn fail_commit<G>(trial: &Trial<G>, message: &RawMessage, statement: usize) -> Outcome {
    trial.wire.arm(statement, Fault::Error);
    let verdict = trial.deliver(message, false).await;
    trial.wire.take_fired();
    if is_handled(&verdict) {
        return trial.broken(Rule::Derived, format!("a handling with more than {statement} statements this time"));
    }
    match trial.deliver(message, true).await {
        Verdict::Duplicate => Ok(()),
        verdict => trial.broken(Rule::Once, format!("after a commit that nobody heard of: {verdict:?}")),
    }
}

/// Forgets the attempts of a delivery, so that the next one is its first; returns how many there were.
async fn forget<G>(trial: &Trial<G>, message: &RawMessage) -> Outcome<i32> {
    let (id, name) = (peek(message).map_or(Uuid::nil(), |metadata| metadata.id), trial.name());
    let attempts = sqlx::query_scalar!(
        "delete from mesh.delivery_attempt where event_id = $1 and subscriber = $2 returning attempts",
        id,
        name,
    )
    .fetch_optional(trial.pool())
    .await?;
    // Kept by a policy of one attempt.
    sqlx::query!("delete from mesh.dead_letter where event_id = $1 and subscriber = $2", id, name)
        .execute(trial.pool())
        .await?;
    sqlx::query!("delete from mesh.inbox where event_id = $1 and subscriber = $2", id, name)
        .execute(trial.pool())
        .await?;
    Ok(attempts.unwrap_or_default())
}
