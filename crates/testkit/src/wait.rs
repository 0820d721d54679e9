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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn the_value_comes_as_soon_as_the_predicate_holds() {
        let polls = Cell::new(0);
        let value = until("the third poll", Duration::from_secs(10), || {
            polls.set(polls.get() + 1);
            let poll = polls.get();
            async move { if poll == 3 { Ok(poll) } else { Err("too early") } }
        });
        assert_eq!(value.await.unwrap(), 3);
        assert_eq!(polls.get(), 3);
    }

    #[tokio::test]
    async fn a_wait_that_runs_out_tells_what_it_saw_last() {
        let start = Instant::now();
        let limit = Duration::from_millis(120);
        let error = until("five orders", limit, || async { Err::<(), _>("4 orders") }).await.unwrap_err();
        assert_eq!((&error.awaited[..], &error.last_seen[..]), ("five orders", "4 orders"));
        assert!(format!("{error:?}").ends_with(" ms for five orders; last seen: 4 orders"), "{error:?}");
        // The last poll is at most one pause before the deadline.
        assert!(start.elapsed() >= limit - PAUSE_MAX && error.waited >= limit - PAUSE_MAX);

        let error = until("anything", Duration::ZERO, || async { Err::<(), _>("polled once") }).await.unwrap_err();
        assert_eq!(error.last_seen, "polled once");
    }

    #[tokio::test]
    async fn a_poll_that_hangs_does_not_hang_the_wait() {
        let polls = Cell::new(0);
        let error = until("an answer", Duration::from_millis(50), || {
            polls.set(polls.get() + 1);
            let hangs = polls.get() > 1;
            async move { if hangs { std::future::pending::<Result<(), _>>().await } else { Err("no answer") } }
        })
        .await
        .unwrap_err();
        assert_eq!(error.last_seen, "no answer, before it (the check itself did not return)");
    }
}
