//! What HTTP handlers of a service share.

use std::sync::Arc;

use sqlx::PgPool;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::context::ServiceContext;
use crate::lifecycle::Lifecycle;
use crate::tx::Tx;

/// The state of a service's HTTP routes: its database, its identity, its running tasks.
#[derive(Debug, Clone)]
pub struct Mesh {
    pool: PgPool,
    context: Arc<ServiceContext>,
    lifecycle: Lifecycle,
}

impl Mesh {
    pub(crate) fn new(pool: PgPool, context: Arc<ServiceContext>, lifecycle: Lifecycle) -> Self {
        Self { pool, context, lifecycle }
    }

    /// Connections to the service's database, for reads. What changes state goes through
    /// [`http::Operation`](crate::http::Operation).
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Identity, clock and signals of the process.
    #[must_use]
    pub fn context(&self) -> &Arc<ServiceContext> {
        &self.context
    }

    /// Tasks that a shutdown waits for.
    #[must_use]
    pub fn tasks(&self) -> &TaskTracker {
        self.lifecycle.tracker()
    }

    pub(crate) fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    /// Begins a transaction for a request from outside; its first fact will carry `root_id`.
    pub(crate) async fn begin(&self, operation: &str, root_id: Uuid) -> sqlx::Result<Tx> {
        Tx::begin_root(&self.pool, &self.context, operation, root_id).await
    }
}
