//! Which bucket groups this relay may publish, by leases in the database.
//!
//! A lease is held by the database's clock; the holder stops by its own monotonic clock two seconds earlier. A publish
//! cannot be fenced by a database, so a paused holder may publish a duplicate; the epoch keeps it from moving rows, and
//! the inbox lets no duplicate through.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::Instant;
use uuid::Uuid;

use crate::outbox::BUCKET_GROUPS;

/// How long a lease lasts without renewal: the longest wait for a killed relay's groups.
const LEASE: Duration = Duration::from_secs(10);

/// How much earlier than the database the holder considers its lease over.
const MARGIN: Duration = Duration::from_secs(2);

/// A group that this relay holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) bucket_group: i16,
    pub(super) epoch: i64,
}

/// The outcome of a renewal.
#[derive(Debug)]
pub(super) struct Renewal {
    /// Everything that is to be published from here.
    pub(super) leases: Vec<Lease>,
    /// More than that is held: groups that are to go to other relays, once this one has left them.
    pub(super) is_leaving: bool,
    /// Publish nothing after this instant without another renewal.
    pub(super) deadline: Instant,
}

/// Renews what this relay holds, gives up what exceeds its fair share, takes what is free up to it.
///
/// A group is given up in two steps, or rows of it would be moved without a lease: first it is left out of the answer,
/// and once the relay has left it (`has_left`) another may have it.
pub(super) async fn renew(
    pool: &PgPool,
    owner: Uuid,
    label: &str,
    has_left: impl Fn(i16) -> bool,
) -> sqlx::Result<Renewal> {
    // From before the first statement: the database's clock can only be later.
    let deadline = Instant::now() + LEASE - MARGIN;
    let seconds = LEASE.as_secs_f64();
    announce(pool, owner, label, seconds).await?;
    let mut leases = extend(pool, owner, seconds).await?;
    // The same groups are in excess at every renewal.
    leases.sort_unstable_by_key(|lease| lease.bucket_group);
    let share = fair_share(relays_alive(pool).await?);
    let surplus: Vec<i16> = leases.drain(share.min(leases.len())..).map(|lease| lease.bucket_group).collect();
    let left: Vec<i16> = surplus.iter().copied().filter(|group| has_left(*group)).collect();
    if !left.is_empty() {
        release(pool, owner, &left).await?;
    }
    if leases.len() < share {
        leases.extend(take_free(pool, owner, share - leases.len(), seconds).await?);
    }
    Ok(Renewal { leases, is_leaving: left.len() < surplus.len(), deadline })
}

/// An equal share of all groups, rounded up so that none is left over.
fn fair_share(relays: i64) -> usize {
    let relays = usize::try_from(relays.max(1)).unwrap_or(1);
    (BUCKET_GROUPS as usize).div_ceil(relays)
}

async fn announce(pool: &PgPool, owner: Uuid, label: &str, seconds: f64) -> sqlx::Result<()> {
    sqlx::query!(
        r#"
        insert into mesh.outbox_relay (owner, label, expires_at)
        values ($1, $2, clock_timestamp() + make_interval(secs => $3))
        on conflict (owner) do update set expires_at = excluded.expires_at
        "#,
        owner,
        label,
        seconds,
    )
    .execute(pool)
    .await?;
    Ok(())
}

async fn extend(pool: &PgPool, owner: Uuid, seconds: f64) -> sqlx::Result<Vec<Lease>> {
    sqlx::query_as!(
        Lease,
        r#"
        update mesh.outbox_lease set expires_at = clock_timestamp() + make_interval(secs => $2)
        where owner = $1
        returning bucket_group, epoch
        "#,
        owner,
        seconds,
    )
    .fetch_all(pool)
    .await
}

async fn relays_alive(pool: &PgPool) -> sqlx::Result<i64> {
    sqlx::query_scalar!(r#"select count(*) as "count!" from mesh.outbox_relay where expires_at > clock_timestamp()"#)
        .fetch_one(pool)
        .await
}

async fn take_free(pool: &PgPool, owner: Uuid, count: usize, seconds: f64) -> sqlx::Result<Vec<Lease>> {
    sqlx::query_as!(
        Lease,
        r#"
        update mesh.outbox_lease
        set owner = $1, epoch = epoch + 1, expires_at = clock_timestamp() + make_interval(secs => $3)
        where bucket_group in (
            select bucket_group from mesh.outbox_lease
            where expires_at < clock_timestamp()
            order by bucket_group
            limit $2
            for update skip locked
        )
        returning bucket_group, epoch
        "#,
        owner,
        i64::try_from(count).unwrap_or(i64::MAX),
        seconds,
    )
    .fetch_all(pool)
    .await
}

/// Gives groups to whoever asks next.
async fn release(pool: &PgPool, owner: Uuid, groups: &[i16]) -> sqlx::Result<()> {
    sqlx::query!(
        "update mesh.outbox_lease set owner = null, expires_at = '-infinity' where owner = $1 and bucket_group = any ($2)",
        owner,
        groups,
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Gives up everything, at shutdown, so that another replica need not wait for the lease to end.
pub(super) async fn resign(pool: &PgPool, owner: Uuid) -> sqlx::Result<()> {
    sqlx::query!("update mesh.outbox_lease set owner = null, expires_at = '-infinity' where owner = $1", owner)
        .execute(pool)
        .await?;
    sqlx::query!(
        "delete from mesh.outbox_relay where owner = $1 or expires_at < clock_timestamp() - interval '1 hour'",
        owner
    )
    .execute(pool)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::fair_share;

    #[test]
    fn the_shares_cover_all_groups_and_differ_by_what_rounding_takes() {
        assert_eq!([1, 2, 3, 4, 5, 16, 40].map(fair_share), [16, 8, 6, 4, 4, 1, 1]);
        assert_eq!(fair_share(0), 16, "a relay counts itself even when its row has just run out");
    }
}
