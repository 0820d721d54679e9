//! Which replica works on an operation, and what comes next. A lease only keeps replicas out of each other's way: what is
//! done is decided by the locks on the letters.

use sqlx::PgPool;
use uuid::Uuid;

use super::super::claim::Item;

/// How long a replica that has ended holds up its operation.
const LEASE_SECONDS: f64 = 10.0;

/// An operation that this replica works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Leased {
    pub(in super::super) operation_id: Uuid,
    pub(in super::super) rate_per_second: u32,
}

/// The next member of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Next {
    pub(in super::super) item: Item,
    pub(in super::super) letter: i64,
    /// The work on it began, and no end of it is written down.
    pub(in super::super) is_begun: bool,
}

impl Leased {
    /// Takes the oldest operation that nobody works on.
    pub(in super::super) async fn take(pool: &PgPool, owner: Uuid) -> sqlx::Result<Option<Self>> {
        let row = sqlx::query!(
            r#"
            update mesh.operation set owner = $1, expires_at = clock_timestamp() + make_interval(secs => $2)
            where operation_id = (
                select operation_id from mesh.operation
                where state = 'running' and (owner = $1 or expires_at < clock_timestamp())
                order by requested_at
                limit 1
                for update skip locked
            )
            returning operation_id, rate_per_second
            "#,
            owner,
            LEASE_SECONDS,
        )
        .fetch_optional(pool)
        .await?;
        Ok(row.map(|row| Self { operation_id: row.operation_id, rate_per_second: row.rate_per_second.unsigned_abs() }))
    }

    /// Renews the lease. Returns false when the operation was stopped, or another replica has it.
    pub(in super::super) async fn renew(&self, pool: &PgPool, owner: Uuid) -> sqlx::Result<bool> {
        let renewed = sqlx::query!(
            r#"
            update mesh.operation set expires_at = clock_timestamp() + make_interval(secs => $3)
            where operation_id = $1 and owner = $2 and state = 'running'
            "#,
            self.operation_id,
            owner,
            LEASE_SECONDS,
        )
        .execute(pool)
        .await?;
        Ok(renewed.rows_affected() == 1)
    }

    /// The first member without an outcome.
    pub(in super::super) async fn next(&self, pool: &PgPool) -> sqlx::Result<Option<Next>> {
        let row = sqlx::query!(
            r#"
            select position, member, begun_at is not null as "begun!"
            from mesh.operation_item
            where operation_id = $1 and outcome is null
            order by position
            limit 1
            "#,
            self.operation_id,
        )
        .fetch_optional(pool)
        .await?;
        Ok(row.map(|row| Next {
            item: Item { operation_id: self.operation_id, position: row.position },
            letter: row.member,
            is_begun: row.begun,
        }))
    }

    /// Every member has its outcome.
    pub(in super::super) async fn finish(&self, pool: &PgPool) -> sqlx::Result<()> {
        sqlx::query!(
            r#"
            update mesh.operation set state = 'finished', finished_at = now()
            where operation_id = $1 and state = 'running'
            "#,
            self.operation_id,
        )
        .execute(pool)
        .await?;
        Ok(())
    }

    /// Leaves it to whoever asks next.
    pub(in super::super) async fn resign(&self, pool: &PgPool, owner: Uuid) -> sqlx::Result<()> {
        sqlx::query!(
            "update mesh.operation set owner = null, expires_at = '-infinity' where operation_id = $1 and owner = $2",
            self.operation_id,
            owner,
        )
        .execute(pool)
        .await?;
        Ok(())
    }
}
