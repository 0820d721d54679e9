//! A transaction shared by several handlings, each under a savepoint: one that fails takes only itself back.

use std::sync::Arc;

use sqlx::PgPool;

use super::{Cause, Origin, Tx};
use crate::context::ServiceContext;

/// How long a part waits for a row that another transaction holds. Two shared transactions that lock the same rows in
/// different orders would otherwise wait for the deadlock detector, with all that they hold; a part that gives up here
/// runs alone instead, and then waits as long as it takes.
const BEGIN: &str = "begin; set local lock_timeout = '100ms'";

impl Tx {
    /// Begins a transaction for several handlings. What it does before [`Tx::begin_parts`] belongs to all of them.
    pub(crate) async fn begin_shared(pool: &PgPool, context: &Arc<ServiceContext>) -> sqlx::Result<Self> {
        Ok(Self::around(pool.begin_with(BEGIN).await?, context, "", Origin::Batch))
    }

    /// Begins the first part.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) async fn begin_parts(&mut self) -> sqlx::Result<()> {
        sqlx::raw_sql("savepoint part").execute(&mut *self.inner).await?;
        Ok(())
    }

    /// Turns the open part to a handling of `name` that reacts to `cause`, or to many facts when there is none.
    pub(crate) fn turn_to(&mut self, name: &str, cause: Option<Cause>) {
        self.emitter = format!("{}/{name}", self.context.name);
        self.origin = cause.map_or(Origin::Batch, Origin::Reaction);
        self.trace = crate::telemetry::trace::current_context();
        self.staged_before = self.staged.len();
        self.by_cause.clear();
    }

    /// Keeps what the open part did and begins the next one.
    ///
    /// # Errors
    /// When the database fails, and when a statement of the part failed and its error was swallowed: then the part has to
    /// be taken back.
    pub(crate) async fn keep_part(&mut self) -> sqlx::Result<()> {
        sqlx::raw_sql("release savepoint part; savepoint part").execute(&mut *self.inner).await?;
        Ok(())
    }

    /// Takes back what the open part did and begins it anew.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) async fn take_back_part(&mut self) -> sqlx::Result<()> {
        self.staged.truncate(self.staged_before);
        sqlx::raw_sql("rollback to savepoint part").execute(&mut *self.inner).await?;
        Ok(())
    }
}
