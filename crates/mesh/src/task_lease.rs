//! Work that one replica does for all: who does it, by a lease in the database.
//!
//! The lease is held by the database's clock. Its epoch fences the statements that must not be repeated by a holder that
//! was paused; everything else that is done under it may be done twice.

use std::time::Duration;

use sqlx::PgPool;
use uuid::Uuid;

/// How long a lease lasts without renewal: the longest wait for the work of a replica that was killed.
const LEASE: Duration = Duration::from_secs(10);

/// Work of which there is one for a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Comparing the outbox with the stream.
    Reconcile,
    /// Removing what is no longer needed.
    Janitor,
}

impl Task {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Reconcile => "reconcile",
            Self::Janitor => "janitor",
        }
    }
}

/// The right to do a task. It may have run out by the time it is used; statements that must not be repeated compare
/// the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskLease {
    pub(crate) owner: Uuid,
    pub(crate) epoch: i64,
}

/// Renews the lease of the task, or takes it when nobody holds it. `None` when another replica does.
pub(crate) async fn hold(pool: &PgPool, task: Task, owner: Uuid) -> sqlx::Result<Option<TaskLease>> {
    let epoch = sqlx::query_scalar!(
        r#"
        update mesh.task_lease
        set epoch = case when owner = $2 and expires_at > clock_timestamp() then epoch else epoch + 1 end,
            owner = $2, expires_at = clock_timestamp() + make_interval(secs => $3)
        where task = $1 and (owner = $2 or expires_at < clock_timestamp())
        returning epoch
        "#,
        task.name(),
        owner,
        LEASE.as_secs_f64(),
    )
    .fetch_optional(pool)
    .await?;
    Ok(epoch.map(|epoch| TaskLease { owner, epoch }))
}

/// Gives the task up at shutdown, so that another replica need not wait for the lease to end.
pub(crate) async fn resign(pool: &PgPool, task: Task, owner: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "update mesh.task_lease set owner = null, expires_at = '-infinity' where task = $1 and owner = $2",
        task.name(),
        owner,
    )
    .execute(pool)
    .await?;
    Ok(())
}
