//! Comparing the outbox with the stream, as an operator asks for it.

use serde::Deserialize;
use sqlx::PgPool;

use crate::reconcile::state::{self, State};

/// The body of `mesh.ctl.<service>.reconcile`. An empty one asks for a comparison.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wish {
    /// Whether to compare now, or only to tell of the last comparison.
    #[serde(default = "yes")]
    run: bool,
}

const fn yes() -> bool {
    true
}

/// Asks for a comparison, unless only the last one is to be told of. Whichever replica does the work sees the request within
/// seconds; the answer tells how far it is.
pub(super) async fn look(pool: &PgPool, wish: Wish) -> sqlx::Result<State> {
    if wish.run {
        state::request(pool).await?;
    }
    state::load(pool).await
}
