//! What operators had done: written down before the first member is touched, idempotent by its id, observable while it
//! runs.

mod lease;
mod status;
mod submit;

use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use uuid::Uuid;

pub(super) use lease::{Leased, Next};
pub(crate) use status::{Listed, Progress};
pub(crate) use submit::stop;

/// How long a token is good.
pub(crate) const TOKEN_SECONDS: u32 = 300;

/// How long finished operations can be looked at.
const RETENTION_DAYS: i32 = 90;

/// What is done to the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// Run the handlers of dead letters again.
    Redrive,
    /// Give dead letters up for good.
    Discard,
    /// Put rows of the outbox that were given up back into it.
    Retry,
}

impl Action {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Redrive => "redrive",
            Self::Discard => "discard",
            Self::Retry => "retry",
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    /// Of a preview of the same action.
    pub(crate) token: Uuid,
    /// Chosen by whoever asks: asking again with the same is asking once.
    pub(crate) operation_id: Uuid,
    /// Why.
    pub(crate) reason: String,
    /// Who.
    pub(crate) who: String,
    /// Members per second, 20 when absent.
    pub(crate) rate_per_second: Option<u16>,
}

/// Why an operation is not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OperationError {
    /// It was never given out, was acted upon, or is of another action.
    #[error("no {} goes by this token: ask for a preview first", .0.as_str())]
    UnknownToken(Action),
    #[error("the token has expired: ask for a preview again")]
    Expired,
    /// Doing it to what is there now is not what was agreed to.
    #[error("the set has changed since the preview: ask for a preview again")]
    Changed,
    #[error("operation {0} is another one: choose a new id")]
    Taken(Uuid),
    #[error("there is no operation {0}")]
    Unknown(Uuid),
    #[error("{0}")]
    Incomplete(&'static str),
    #[error("the database did not do it")]
    Database(#[from] sqlx::Error),
}

/// Remembers a set; the members are in the order of the work. Forgets the sets of tokens that have expired.
pub(crate) async fn insert_preview(
    pool: &PgPool,
    action: Action,
    members: &[i64],
    digest: &[u8],
) -> sqlx::Result<Uuid> {
    sqlx::query_scalar!(
        r#"
        with forgotten as (
            delete from mesh.operation_preview where expires_at < clock_timestamp() - interval '1 hour'
        )
        insert into mesh.operation_preview (token, action, members, digest, expires_at)
        values (gen_random_uuid(), $1, $2, $3, clock_timestamp() + make_interval(secs => $4))
        returning token
        "#,
        action.as_str(),
        members,
        digest,
        f64::from(TOKEN_SECONDS),
    )
    .fetch_one(pool)
    .await
}
