//! The pull in use: what it yields, and when the next one is built.

use async_nats::jetstream;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull::{self, MessagesErrorKind};
use futures_util::StreamExt;
use tokio::time::Instant;

/// The pull in use, or when the next one is built.
pub(super) enum Pull {
    Open(Box<Open>),
    Closed { failures: u32, due: Instant },
}

/// A running pull and the durable behind it.
pub(super) struct Open {
    pub(super) consumer: PullConsumer,
    pub(super) stream: pull::Stream,
}

/// What comes next from the pull.
pub(super) enum NextStep {
    Yielded(Option<Box<Result<jetstream::Message, pull::MessagesError>>>),
    BuildDue,
}

pub(super) async fn next(pull: &mut Pull) -> NextStep {
    match pull {
        Pull::Open(open) => NextStep::Yielded(open.stream.next().await.map(Box::new)),
        Pull::Closed { due, .. } => {
            tokio::time::sleep_until(*due).await;
            NextStep::BuildDue
        }
    }
}

/// The label under which a rebuild is counted.
pub(super) fn reason(kind: MessagesErrorKind) -> &'static str {
    match kind {
        MessagesErrorKind::MissingHeartbeat => "missing_heartbeat",
        MessagesErrorKind::ConsumerDeleted => "consumer_deleted",
        MessagesErrorKind::NoResponders => "no_responders",
        MessagesErrorKind::RequestLimitExceeded => "request_limit",
        MessagesErrorKind::Pull | MessagesErrorKind::PushBasedConsumer | MessagesErrorKind::Other => "error",
    }
}
