//! The folded state of an account at one of its versions, so that a load need not start at the first entry.

use events::Money;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use crate::domain::Account;

/// A snapshot is taken every so many entries.
pub(super) const EVERY: i64 = 50;
/// Version of the fold. A snapshot of another version is not read: raise it with every change of [`Account::after`] or of
/// [`State`].
const FORMAT: i16 = 1;

/// What is stored of an account.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    balance: Money,
    deposited: Money,
}

/// The account as of its newest snapshot.
pub(super) async fn find(
    connection: &mut PgConnection,
    stream_id: &str,
    customer_id: Uuid,
) -> sqlx::Result<Option<Account>> {
    let row = sqlx::query!(
        r#"
        select stream_version, state as "state: Json<State>"
        from snapshot
        where stream_id = $1 and format = $2
        "#,
        stream_id,
        FORMAT,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| {
        let Json(State { balance, deposited }) = row.state;
        Account { customer_id, balance, deposited, version: row.stream_version }
    }))
}

/// Stores the account when its version is one at which a snapshot is due.
pub(super) async fn take_if_due(connection: &mut PgConnection, stream_id: &str, account: &Account) -> sqlx::Result<()> {
    if account.version % EVERY != 0 {
        return Ok(());
    }
    let state = Json(State { balance: account.balance, deposited: account.deposited });
    sqlx::query!(
        r#"
        insert into snapshot (stream_id, stream_version, format, state)
        values ($1, $2, $3, $4)
        on conflict (stream_id) do update
        set stream_version = excluded.stream_version, format = excluded.format, state = excluded.state, taken_at = now()
        "#,
        stream_id,
        account.version,
        FORMAT,
        state as _,
    )
    .execute(connection)
    .await?;
    Ok(())
}
