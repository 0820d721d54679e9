//! One request, one transaction: the key, the work, the facts and the reply.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use futures_util::FutureExt;
use uuid::Uuid;

use super::Problem;
use super::idempotency::{self, Claim, Found};
use super::operation::{Call, Operation};
use super::problem::Race;
use super::reply::Rendered;
use crate::failure::is_outage;
use crate::telemetry::metrics;
use crate::{Mesh, Tx, clock, failpoints};

/// How often an operation runs before the client is asked to come back.
const RUNS_MAX: u32 = 3;

/// The pause before a run after a lost race, before jitter.
const PAUSE: Duration = Duration::from_millis(20);

/// Marks a reply that was stored by an earlier request.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Runs the operation until it settles, at most [`RUNS_MAX`] times.
pub(super) async fn settle<O: Operation>(operation: Arc<O>, mesh: Mesh, call: Call<O>) -> Result<Response, Problem> {
    let root_id = mesh.context().clock.draw_id();
    let mut run = 1;
    loop {
        match run_once(&*operation, &mesh, &call, root_id).await {
            Err(problem) if problem.race().is_some() && run < RUNS_MAX => {
                tracing::debug!(operation = O::NAME, run, %problem, "running again");
                tokio::time::sleep(clock::jittered(PAUSE, &*mesh.context().clock)).await;
                run += 1;
            }
            Err(problem) => return Err(lost_for_good(problem)),
            Ok(response) => return Ok(response),
        }
    }
}

async fn run_once<O: Operation>(
    operation: &O,
    mesh: &Mesh,
    call: &Call<O>,
    root_id: Uuid,
) -> Result<Response, Problem> {
    let mut tx = mesh.begin(O::NAME, root_id).await?;
    match work(operation, &mut tx, call, root_id).await {
        Ok(Outcome::Done(reply)) => {
            failpoints::hit("api.before_commit");
            tx.commit().await.map_err(|error| not_committed(error, call.claim.as_ref()))?;
            failpoints::hit("api.after_commit_before_reply");
            Ok(reply.into_response())
        }
        Ok(Outcome::DoneBefore(reply)) => {
            undo(tx).await;
            let mut response = reply.into_response();
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
            Ok(response)
        }
        Err(problem) => {
            undo(tx).await;
            Err(problem)
        }
    }
}

/// What the transaction came to.
enum Outcome {
    /// The work is done once this commits.
    Done(Rendered),
    /// An earlier request with this key did it.
    DoneBefore(Rendered),
}

async fn work<O: Operation>(operation: &O, tx: &mut Tx, call: &Call<O>, root_id: Uuid) -> Result<Outcome, Problem> {
    if let Some(claim) = &call.claim {
        let found = idempotency::claim(tx, claim).await?;
        metrics::idempotent_request(O::NAME, found.outcome());
        match found {
            Found::Nothing => {}
            Found::Reply(reply) => return Ok(Outcome::DoneBefore(reply)),
            Found::Running => return Err(idempotency::in_progress()),
            Found::OtherRequest => return Err(idempotency::reused()),
        }
    }
    // Caught here rather than with the task, so that the rollback is waited for and the key free when the client hears.
    let execution = AssertUnwindSafe(operation.execute(tx, call.path.clone(), call.body.clone())).catch_unwind().await;
    let reply = execution.unwrap_or_else(|panic| Err(Problem::panicked(panic)))?.render()?;
    if let Some(claim) = &call.claim {
        idempotency::store(tx, claim, root_id, &reply).await?;
    }
    Ok(Outcome::Done(reply))
}

/// Waits for the rollback, so that the connection returns clean to its pool. When that fails the connection is closed.
async fn undo(tx: Tx) {
    if let Err(error) = tx.rollback().await {
        tracing::debug!(%error, "a rollback failed; the server undoes the transaction with its connection");
    }
}

/// A COMMIT whose answer was lost may have happened. With a key another run finds out; without one only the client can.
fn not_committed(error: sqlx::Error, claim: Option<&Claim>) -> Problem {
    match (is_outage(&error), claim) {
        (true, Some(_)) => Problem::from(error).lost(Race::UnknownCommit),
        (true, None) => Problem::from(error).with_detail(
            "the connection to the database was lost during the commit, so the request may have been done; \
             with an Idempotency-Key it can be repeated safely",
        ),
        (false, _) => error.into(),
    }
}

/// What to say when the last run lost as well.
fn lost_for_good(problem: Problem) -> Problem {
    match problem.race() {
        Some(Race::UniqueKey) => Problem::conflict("something with this identity exists already"),
        Some(Race::Serialization) => Problem::unavailable("too many requests change the same resource at once"),
        Some(Race::UnknownCommit) | None => problem,
    }
}
