//! A JetStream message as the consumer keeps it: what is delivered from it, and how it is answered.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::message::{AckKind, Acker};
use envelope::{RawMessage, Timestamp};

use crate::delivery::{ErasedSubscriber, Incoming, Next};

/// How long an answer may wait for room in the client, which has none left after a long disconnection.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// One message and the subscribers that have not settled it.
pub(super) struct Pending<Context> {
    pub(super) incoming: Arc<Incoming>,
    pub(super) open: Vec<(Arc<dyn ErasedSubscriber<Context>>, Next)>,
    /// Whether a subscriber hears it at all.
    pub(super) is_heard: bool,
    acker: Arc<Acker>,
}

/// Why a message could not be taken over.
#[derive(Debug, thiserror::Error)]
#[error("a message without JetStream metadata on `{subject}`: {why}")]
pub(super) struct NoMetadata {
    subject: String,
    why: String,
}

impl<Context> Pending<Context> {
    /// Takes over a message; `hearing` finds its subscribers.
    pub(super) fn new(
        message: jetstream::Message,
        hearing: impl FnOnce(&Incoming) -> Vec<Arc<dyn ErasedSubscriber<Context>>>,
    ) -> Result<Self, NoMetadata> {
        let (sequence, delivered, stored_at) = match message.info() {
            Ok(info) => (info.stream_sequence, info.delivered, Timestamp::from_offset(info.published)),
            Err(error) => return Err(NoMetadata { subject: message.subject.to_string(), why: error.to_string() }),
        };
        let (message, acker) = message.split();
        let incoming = Arc::new(Incoming::new(raw(&message), sequence, stored_at, delivered > 1));
        let next = Next::on_arrival(&incoming);
        let open: Vec<_> = hearing(&incoming).into_iter().map(|subscriber| (subscriber, next)).collect();
        Ok(Self { is_heard: !open.is_empty(), incoming, open, acker: Arc::new(acker) })
    }

    /// The message needs no further delivery. Only after everything about it is committed.
    pub(super) async fn acknowledge(&self) {
        self.answer(AckKind::Ack).await;
    }

    /// What keeps the message alive while a worker has it.
    pub(super) fn keep_alive(&self) -> KeepAlive {
        KeepAlive(Arc::clone(&self.acker))
    }

    /// The message goes back to the broker, for whoever asks next.
    pub(super) async fn hand_back(&self, delay: Duration) {
        self.answer(AckKind::Nak(Some(delay))).await;
    }

    /// A lost answer is repaired by redelivery and the inbox, so it is no error of the delivery.
    async fn answer(&self, kind: AckKind) {
        match tokio::time::timeout(ANSWER_PATIENCE, self.acker.ack_with(kind)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, event = %self.incoming.id(), "an answer was not sent"),
            Err(_) => tracing::debug!(event = %self.incoming.id(), "the client has no room for an answer"),
        }
    }
}

/// Tells the broker that a message is still being worked on.
pub(super) struct KeepAlive(Arc<Acker>);

impl KeepAlive {
    pub(super) async fn in_progress(&self) {
        if let Err(error) = self.0.ack_with(AckKind::Progress).await {
            tracing::debug!(%error, "progress could not be reported");
        }
    }
}

fn raw(message: &async_nats::Message) -> RawMessage {
    let headers = message.headers.iter().flat_map(async_nats::HeaderMap::iter);
    let headers = headers.flat_map(|(name, values)| values.iter().map(|value| (name.to_string(), value.to_string())));
    RawMessage { subject: message.subject.to_string(), headers: headers.collect(), body: message.payload.to_vec() }
}
