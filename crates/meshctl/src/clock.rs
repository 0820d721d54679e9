//! Time: the only module of the command line that may ask the machine for it.

use envelope::Timestamp;

/// The current instant.
#[expect(clippy::disallowed_methods, reason = "the one place where the ambient clock enters")]
pub(crate) fn now() -> Timestamp {
    Timestamp::from_offset(time::OffsetDateTime::now_utc())
}
