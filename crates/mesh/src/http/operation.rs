//! State-changing endpoints.

use std::future::Future;
use std::sync::Arc;

use axum::extract::{RawPathParams, Request, State};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use serde::de::DeserializeOwned;
use tracing::Instrument;

use super::idempotency::{Claim, Key, fingerprint};
use super::{Path, Problem, Reply, body, transaction};
use crate::{Mesh, Tx};

/// One state-changing endpoint.
///
/// Its body is validated first. Then the claim of the `Idempotency-Key`, [`execute`](Operation::execute), the facts that
/// it publishes and the stored reply are one transaction. A [`Problem`] undoes all of it and stores nothing, so the
/// client may try again with the same key. A lost race runs `execute` again from the start, so it must not keep anything
/// outside the transaction.
///
/// The transaction runs to its end even when the client goes away: what the client asked for is done or undone, never
/// left half-way.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an HTTP operation",
    note = "implement `mesh::http::Operation`: a `NAME`, a `Path`, a `Body`, and `async fn execute`"
)]
pub trait Operation: Send + Sync + 'static {
    /// Durable data, not code: stored replies are found by it and the ids of published facts are derived from it.
    const NAME: &'static str;

    /// The parameters of the route: `()` for none, a type for one, a tuple or a struct for several.
    type Path: DeserializeOwned + Clone + Send + Sync + 'static;

    /// The request body, usually with `#[serde(deny_unknown_fields)]`; [`NoBody`](super::NoBody) for none.
    type Body: DeserializeOwned + Clone + Send + Sync + 'static;

    /// Does the work in `tx` and says what to answer.
    fn execute(
        &self,
        tx: &mut Tx,
        path: Self::Path,
        body: Self::Body,
    ) -> impl Future<Output = Result<Reply, Problem>> + Send;
}

/// A route that runs `operation` on `POST`.
pub fn post<O: Operation>(operation: O) -> MethodRouter<Mesh> {
    route(MethodFilter::POST, operation)
}

/// A route that runs `operation` on `PUT`.
pub fn put<O: Operation>(operation: O) -> MethodRouter<Mesh> {
    route(MethodFilter::PUT, operation)
}

fn route<O: Operation>(method: MethodFilter, operation: O) -> MethodRouter<Mesh> {
    let operation = Arc::new(operation);
    on(method, move |State(mesh): State<Mesh>, Path(path): Path<O::Path>, raw: RawPathParams, request: Request| {
        accept(Arc::clone(&operation), mesh, path, raw, request)
    })
}

/// A validated request.
#[derive(Debug)]
pub(super) struct Call<O: Operation> {
    pub(super) path: O::Path,
    pub(super) body: O::Body,
    /// The idempotency key with what it was used for; none when the client sent none.
    pub(super) claim: Option<Claim>,
}

async fn accept<O: Operation>(
    operation: Arc<O>,
    mesh: Mesh,
    path: O::Path,
    raw: RawPathParams,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let bytes = body::read(body).await?;
    let key = Key::from_headers(&parts.headers)?;
    let body = body::parse::<O::Body>(&parts.headers, &bytes)?;
    let claim = key.map(|key| Claim {
        operation: O::NAME,
        key,
        fingerprint: fingerprint(parts.method.as_str(), O::NAME, &raw, &body.canonical),
    });
    let call = Call { path, body: body.value, claim };
    // The server drops a handler when its client disconnects. A transaction must not be dropped half-way, least of all
    // during BEGIN or COMMIT, so it has a task of its own, which a drain waits for.
    let settled = mesh.tasks().spawn(transaction::settle(operation, mesh.clone(), call).in_current_span());
    settled.await.unwrap_or_else(|error| Err(Problem::internal(error)))
}
