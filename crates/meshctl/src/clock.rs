//! Time and ids: the only module of the command line that may ask the machine for them.

use envelope::Timestamp;
use uuid::Uuid;

/// The current instant.
#[expect(clippy::disallowed_methods, reason = "the one place where the ambient clock enters")]
pub(crate) fn now() -> Timestamp {
    Timestamp::from_offset(time::OffsetDateTime::now_utc())
}

/// A new id: for an idempotency key.
#[expect(clippy::disallowed_methods, reason = "the one place where ambient ids enter")]
pub(crate) fn draw_id() -> Uuid {
    Uuid::now_v7()
}
