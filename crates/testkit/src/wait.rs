//! Waiting on predicates instead of sleeping.
//!
//! A wait that runs out says what was awaited and what was seen last, so that a red test explains itself:
//!
//! ```
//! # use std::time::Duration;
//! # async fn confirmed() -> Result<i64, std::io::Error> { Ok(3) }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let orders = testkit::wait::until("three confirmed orders", Duration::from_secs(10), || async {
//!     match confirmed().await {
//!         Ok(count @ 3..) => Ok(count),
//!         Ok(count) => Err(format!("{count} confirmed")),
//!         Err(error) => Err(error.to_string()),
//!     }
//! })
//! .await
//! .unwrap();
//! # assert_eq!(orders, 3);
//! # });
//! ```

use std::fmt::{self, Display};
use std::time::Duration;

use tokio::time::Instant;

/// The first pause between two polls.
const PAUSE_MIN: Duration = Duration::from_millis(2);
/// The longest pause between two polls.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// A wait that ran out.
///
/// `Debug` prints the same text as `Display`, so that an `unwrap` in a test is readable.
#[derive(Clone, thiserror::Error)]
#[error("waited {} ms for {awaited}; last seen: {last_seen}", .waited.as_millis())]
pub struct TimedOut {
    /// What was awaited.
    pub awaited: String,
    /// What the last completed poll saw instead, or that no poll completed.
    pub last_seen: String,
    /// How long the wait took.
    pub waited: Duration,
}

impl fmt::Debug for TimedOut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, out)
    }
}

/// Polls until the predicate answers `Ok`, and returns its value.
///
/// The predicate's `Err` is the state that it saw: the last one is part of the error when the wait runs out. It is polled
/// once at least, then after pauses that grow from 2 to 50 ms. A poll that hangs is dropped at the deadline, so a poll
/// must not hold a database transaction.
///
/// # Errors
/// [`TimedOut`] when `timeout` has passed.
pub async fn until<T, S, F, P>(awaited: &str, timeout: Duration, mut poll: P) -> Result<T, TimedOut>
where
    S: Display,
    F: Future<Output = Result<T, S>>,
    P: FnMut() -> F,
{
    let start = Instant::now();
    let deadline = start + timeout;
    let mut last_seen = None;
    let mut pause = PAUSE_MIN;
    loop {
        match tokio::time::timeout_at(deadline, poll()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(state)) => last_seen = Some(state.to_string()),
            Err(_) => {
                let seen = last_seen.map_or_else(|| "nothing".to_owned(), |state| format!("{state}, before it"));
                return Err(TimedOut {
                    awaited: awaited.to_owned(),
                    last_seen: format!("{seen} (the check itself did not return)"),
                    waited: start.elapsed(),
                });
            }
        }
        if Instant::now() + pause > deadline {
            return Err(TimedOut {
                awaited: awaited.to_owned(),
                last_seen: last_seen.unwrap_or_default(),
                waited: start.elapsed(),
            });
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
