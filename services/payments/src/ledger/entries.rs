//! Entries as rows, and pages of them.

use serde_json::{Value, json};
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use envelope::Timestamp;

use crate::domain::Entry;

/// A row of `event_store`.
#[derive(Debug)]
pub(super) struct EntryRow {
    pub(super) stream_version: i64,
    pub(super) event_type: String,
    pub(super) payload: Value,
    pub(super) recorded_at: OffsetDateTime,
}

/// An entry as it stands in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Its place in the account, from 1.
    pub version: i64,
    /// What happened.
    pub entry: Entry,
    /// When it was written, by the clock of the database.
    pub recorded_at: Timestamp,
}

/// A row that is no entry.
#[derive(Debug, thiserror::Error)]
#[error("entry {version} of the account of {customer_id} cannot be read")]
struct Unreadable {
    customer_id: Uuid,
    version: i64,
    source: serde_json::Error,
}

impl EntryRow {
    pub(super) fn into_recorded(self, customer_id: Uuid) -> sqlx::Result<Recorded> {
        let Self { stream_version: version, event_type, payload, recorded_at } = self;
        let entry = serde_json::from_value(json!({ "event_type": event_type, "payload": payload }))
            .map_err(|source| sqlx::Error::Decode(Box::new(Unreadable { customer_id, version, source })))?;
        Ok(Recorded { version, entry, recorded_at: recorded_at.into() })
    }
}

/// The columns `event_type` and `payload` of an entry.
pub(super) fn columns(entry: &Entry) -> sqlx::Result<(String, Value)> {
    #[derive(serde::Deserialize)]
    struct Columns {
        event_type: String,
        payload: Value,
    }
    let columns = serde_json::to_value(entry).and_then(serde_json::from_value);
    let Columns { event_type, payload } = columns.map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    Ok((event_type, payload))
}

/// At most `limit` entries of an account after version `after`, oldest first.
///
/// # Errors
/// When the statement fails or a row is no entry.
pub async fn entries(
    connection: &mut PgConnection,
    customer_id: Uuid,
    after: i64,
    limit: i64,
) -> sqlx::Result<Vec<Recorded>> {
    let rows = sqlx::query_as!(
        EntryRow,
        r#"
        select stream_version, event_type, payload, recorded_at
        from event_store
        where stream_id = $1 and stream_version > $2
        order by stream_version
        limit $3
        "#,
        super::stream_id(customer_id),
        after,
        limit,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(|row| row.into_recorded(customer_id)).collect()
}
