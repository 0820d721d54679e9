//! One execution of a handler, in a task that nothing cancels.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle};

use super::{Delivery, Ended, ErasedSubscriber, Inbox, Incoming};
use crate::clock::jittered;
use crate::dead_letter::Letter;
use crate::failure::{Backoff, Failure};

/// What one execution is about.
#[derive(Debug)]
pub(crate) struct Execution {
    /// The subscriber.
    pub(crate) name: &'static str,
    pub(crate) incoming: Arc<Incoming>,
    /// Which execution of this delivery it is: 1 is the first.
    pub(crate) attempt: u32,
    /// The delivery did not arrive just now: it was kept as this dead letter.
    pub(crate) letter: Option<Letter>,
}

/// Fresh tries after losing a race for the same rows, before it counts as a failed attempt.
const CONFLICT_TRIES: u32 = 5;

/// Delays between those tries.
const CONFLICT_BACKOFF: Backoff = Backoff { first: Duration::from_millis(5), longest: Duration::from_millis(80) };

/// Executes the handler, again from a fresh read when another transaction won a race.
pub(super) async fn execute<I: Inbox>(
    delivery: &Delivery<I>,
    subscriber: &Arc<dyn ErasedSubscriber<I::Context>>,
    incoming: &Arc<Incoming>,
    attempt: u32,
    letter: Option<Letter>,
) -> Ended {
    let mut tries = 0;
    loop {
        let ended = guarded(delivery, subscriber, incoming, attempt, letter).await;
        tries += 1;
        match ended {
            Ended::Failed(Failure::Conflict(_)) if tries < CONFLICT_TRIES => {
                let pause = jittered(CONFLICT_BACKOFF.delay(tries), &*delivery.context.clock);
                tokio::time::sleep(pause).await;
            }
            ended => return ended,
        }
    }
}

/// Runs the handler in its own task: a panic is caught there, and a handler that takes too long loses its slot but is
/// not cut off inside its transaction. If it commits after all, the redelivery finds it settled.
async fn guarded<I: Inbox>(
    delivery: &Delivery<I>,
    subscriber: &Arc<dyn ErasedSubscriber<I::Context>>,
    incoming: &Arc<Incoming>,
    attempt: u32,
    letter: Option<Letter>,
) -> Ended {
    let timeout = subscriber.policy().timeout;
    let prepared = match Arc::clone(subscriber).prepare(incoming.raw(), attempt) {
        Ok(prepared) => prepared,
        Err(error) => return Ended::Undecodable(error),
    };
    let execution = Execution { name: subscriber.name(), incoming: Arc::clone(incoming), attempt, letter };
    let running = delivery.running.enter(incoming.id(), subscriber.name());
    let work = delivery.inbox.clone().run(execution, prepared);
    let work = async move {
        let _running = running;
        work.await
    };
    let mut task = tokio::spawn(tracing::Instrument::in_current_span(work));
    match tokio::time::timeout(timeout, &mut task).await {
        Ok(Ok(ended)) => ended,
        Ok(Err(error)) => Ended::Failed(Failure::Retry(panicked(error))),
        Err(_) => {
            abort_late(task);
            Ended::Failed(Failure::Retry(anyhow::anyhow!("the handler took longer than {timeout:?}")))
        }
    }
}

/// How long an execution that has lost its slot may still take.
const GRACE: Duration = Duration::from_secs(60);

/// Takes the connection from a handler that never returns. By then its BEGIN is long done, and the server has ended the
/// session of a handler that waits without a statement; what is dropped is rolled back.
fn abort_late(task: JoinHandle<Ended>) {
    tokio::spawn(async move {
        tokio::time::sleep(GRACE).await;
        task.abort();
    });
}

fn panicked(error: JoinError) -> anyhow::Error {
    let Ok(panic) = error.try_into_panic() else { return anyhow::anyhow!("the handler's task was cancelled") };
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    anyhow::anyhow!("the handler panicked: {}", text.as_deref().unwrap_or("no message"))
}
