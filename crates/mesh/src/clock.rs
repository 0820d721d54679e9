//! Time, ids and randomness: the only module that may ask the machine for them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use envelope::Timestamp;
use time::OffsetDateTime;
use uuid::Uuid;

/// Tells the time and draws ids. A service takes [`System`]; tests and replays inject their own.
///
/// Leases, deadlines and due times never use it: they compare by the clock of the database.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The current instant, UTC, with millisecond precision.
    fn now(&self) -> Timestamp;
    /// A new id for the root of a flow: time-ordered, never derived.
    fn draw_id(&self) -> Uuid;
    /// A number in `0.0..1.0` for jitter.
    fn random(&self) -> f64;
}

/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

#[expect(clippy::disallowed_methods, reason = "the one place where the ambient clock and ids enter")]
impl Clock for System {
    fn now(&self) -> Timestamp {
        Timestamp::from_offset(OffsetDateTime::now_utc())
    }

    fn draw_id(&self) -> Uuid {
        Uuid::now_v7()
    }

    fn random(&self) -> f64 {
        // 53 random bits fill the mantissa of a double exactly.
        let bits = Uuid::new_v4().as_u128() as u64 >> 11;
        bits as f64 / (1_u64 << 53) as f64
    }
}

/// `base` scaled by a random factor between 0.5 and 1.0, so that replicas that fail together do not return together.
#[must_use]
pub fn jittered(base: Duration, clock: &dyn Clock) -> Duration {
    base.mul_f64(0.5 + clock.random() / 2.0)
}
