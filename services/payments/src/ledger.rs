//! The accounts: one stream of entries each, folded on every load.
//!
//! The balance is stored nowhere but in the entries. A snapshot only shortens a load; without it the same account comes
//! out.

mod entries;
mod snapshot;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::domain::{Account, Entry, LedgerError};
use entries::EntryRow;

pub use entries::{Recorded, entries};

/// Reads an account.
///
/// # Errors
/// When a statement fails or the stored entries cannot follow each other.
pub async fn load(connection: &mut PgConnection, customer_id: Uuid) -> sqlx::Result<Option<Account>> {
    let stream_id = stream_id(customer_id);
    let snapshot = snapshot::find(connection, &stream_id, customer_id).await?;
    // Read after the snapshot, in a statement of its own: what is newer is seen or not, nothing can be missing between.
    let rows = sqlx::query_as!(
        EntryRow,
        r#"
        select stream_version, event_type, payload, recorded_at
        from event_store
        where stream_id = $1 and stream_version > $2
        order by stream_version
        "#,
        stream_id,
        snapshot.map_or(0, |account| account.version),
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().try_fold(snapshot, |before, row| {
        let Recorded { version, entry, .. } = row.into_recorded(customer_id)?;
        let after =
            Account::after(before, customer_id, &entry).map_err(|source| broken(customer_id, version, source))?;
        Ok(Some(after))
    })
}

/// Reads an account and makes the other writers of it wait until the transaction ends.
///
/// Only a courtesy: a busy account costs its writers waiting and not retries. What keeps them apart is the primary key,
/// see [`append`].
///
/// # Errors
/// Those of [`load`].
pub async fn load_for_update(connection: &mut PgConnection, customer_id: Uuid) -> sqlx::Result<Option<Account>> {
    // A statement of its own: the load must begin after the wait to see what the writer before has committed.
    sqlx::query!("select pg_advisory_xact_lock(hashtextextended($1, 0))", stream_id(customer_id))
        .execute(&mut *connection)
        .await?;
    load(connection, customer_id).await
}

/// Appends an entry to the account that `before` is the newest state of; none for its first entry.
///
/// # Errors
/// A unique violation when another writer has appended to the same state: start over from a fresh read. Otherwise when a
/// statement fails or the entry cannot follow.
pub async fn append(
    connection: &mut PgConnection,
    customer_id: Uuid,
    before: Option<Account>,
    entry: &Entry,
) -> sqlx::Result<Account> {
    let version = before.map_or(0, |account| account.version) + 1;
    let after = Account::after(before, customer_id, entry).map_err(|source| broken(customer_id, version, source))?;
    let stream_id = stream_id(customer_id);
    let (event_type, payload) = entries::columns(entry)?;
    sqlx::query!(
        "insert into event_store (stream_id, stream_version, event_type, payload) values ($1, $2, $3, $4)",
        stream_id,
        version,
        event_type,
        payload,
    )
    .execute(&mut *connection)
    .await?;
    snapshot::take_if_due(connection, &stream_id, &after).await?;
    Ok(after)
}

fn stream_id(customer_id: Uuid) -> String {
    format!("account-{customer_id}")
}

/// A stored entry that cannot follow the ones before it.
#[derive(Debug, thiserror::Error)]
#[error("entry {version} of the account of {customer_id} cannot follow")]
struct BrokenLedger {
    customer_id: Uuid,
    version: i64,
    source: LedgerError,
}

fn broken(customer_id: Uuid, version: i64, source: LedgerError) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(BrokenLedger { customer_id, version, source }))
}

#[cfg(test)]
mod tests;
