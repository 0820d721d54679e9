//! The subscribers of a service with their types erased, found by the fact that they hear.

use std::pin::Pin;
use std::sync::Arc;

use envelope::{DecodeError, Event, EventType, RawMessage, decode};

use super::Outage;
use crate::failure::Failure;
use crate::subscriber::{BatchSubscriber, Handled, Policy, Received, Subscriber};
use crate::tx::Tx;

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A subscriber whose event type is forgotten. Its handler works in a `Context`.
pub(crate) trait ErasedSubscriber<Context = Tx>: Send + Sync {
    fn name(&self) -> &'static str;
    fn policy(&self) -> Policy;
    fn event_type(&self) -> EventType;
    /// Decodes the message; the result runs the handler.
    fn prepare(self: Arc<Self>, raw: &RawMessage, attempt: u32) -> Result<Box<dyn Prepared<Context>>, DecodeError>;

    /// Decodes first deliveries for one call of the handler; none if it takes one fact at a time. The second value tells
    /// which messages could be decoded.
    fn prepare_batch(self: Arc<Self>, _: &[&RawMessage]) -> Option<(Box<dyn PreparedBatch<Context>>, Vec<bool>)> {
        None
    }

    /// Whether one call of the handler takes many facts.
    fn takes_batches(&self) -> bool {
        false
    }

    /// Whether what the handler needs answers.
    fn probe(&self) -> BoxFuture<'_, Result<(), Outage>>;
}

/// A decoded message in front of its handler.
pub(crate) trait Prepared<Context = Tx>: Send {
    fn run<'a>(self: Box<Self>, context: &'a mut Context) -> BoxFuture<'a, Result<Handled, Failure>>;
}

/// Decoded messages in front of one call of their handler.
pub(crate) trait PreparedBatch<Context = Tx>: Send {
    fn run<'a>(self: Box<Self>, context: &'a mut Context) -> BoxFuture<'a, Result<Vec<Handled>, Failure>>;
}

struct Typed<S>(S);

struct Pending<S: Subscriber<Context>, Context: Send> {
    subscriber: Arc<Typed<S>>,
    received: Received<S::Event>,
}

impl<S: Subscriber<Context>, Context: Send + 'static> ErasedSubscriber<Context> for Typed<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn policy(&self) -> Policy {
        self.0.policy()
    }

    fn event_type(&self) -> EventType {
        EventType::of::<S::Event>()
    }

    fn prepare(self: Arc<Self>, raw: &RawMessage, attempt: u32) -> Result<Box<dyn Prepared<Context>>, DecodeError> {
        let received = received(raw, attempt)?;
        Ok(Box::new(Pending { subscriber: self, received }))
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), Outage>> {
        Box::pin(async { self.0.probe().await.map_err(|error| Outage(format!("{}: {error:#}", S::NAME))) })
    }
}

impl<S: Subscriber<Context>, Context: Send> Prepared<Context> for Pending<S, Context> {
    fn run<'a>(self: Box<Self>, context: &'a mut Context) -> BoxFuture<'a, Result<Handled, Failure>> {
        Box::pin(async move { self.subscriber.0.handle(context, self.received).await })
    }
}

struct TypedBatch<S>(S);

struct PendingBatch<S: BatchSubscriber> {
    subscriber: Arc<TypedBatch<S>>,
    received: Vec<Received<S::Event>>,
}

impl<S: BatchSubscriber> ErasedSubscriber for TypedBatch<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn policy(&self) -> Policy {
        self.0.policy()
    }

    fn event_type(&self) -> EventType {
        EventType::of::<S::Event>()
    }

    fn prepare(self: Arc<Self>, raw: &RawMessage, attempt: u32) -> Result<Box<dyn Prepared>, DecodeError> {
        let received = vec![received(raw, attempt)?];
        Ok(Box::new(PendingBatch { subscriber: self, received }))
    }

    fn prepare_batch(self: Arc<Self>, raws: &[&RawMessage]) -> Option<(Box<dyn PreparedBatch>, Vec<bool>)> {
        let decoded: Vec<_> = raws.iter().map(|raw| received(raw, 1).ok()).collect();
        let readable = decoded.iter().map(Option::is_some).collect();
        let received = decoded.into_iter().flatten().collect();
        Some((Box::new(PendingBatch { subscriber: self, received }), readable))
    }

    fn takes_batches(&self) -> bool {
        true
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), Outage>> {
        Box::pin(async { Ok(()) })
    }
}

impl<S: BatchSubscriber> PendingBatch<S> {
    async fn handle(self, tx: &mut Tx) -> Result<Vec<Handled>, Failure> {
        let handled = self.subscriber.0.handle(tx, &self.received).await?;
        if handled.len() == self.received.len() {
            return Ok(handled);
        }
        let (answers, facts) = (handled.len(), self.received.len());
        Err(Failure::Retry(anyhow::anyhow!("the handler gave {answers} answers for {facts} facts")))
    }
}

impl<S: BatchSubscriber> PreparedBatch for PendingBatch<S> {
    fn run<'a>(self: Box<Self>, tx: &'a mut Tx) -> BoxFuture<'a, Result<Vec<Handled>, Failure>> {
        Box::pin(self.handle(tx))
    }
}

impl<S: BatchSubscriber> Prepared for PendingBatch<S> {
    fn run<'a>(self: Box<Self>, tx: &'a mut Tx) -> BoxFuture<'a, Result<Handled, Failure>> {
        Box::pin(async move {
            let handled = self.handle(tx).await?;
            handled.first().copied().ok_or_else(|| Failure::Retry(anyhow::anyhow!("the handler gave no answer")))
        })
    }
}

/// The fact and its envelope.
fn received<E: Event>(raw: &RawMessage, attempt: u32) -> Result<Received<E>, DecodeError> {
    let (metadata, event) = decode::<E>(raw)?;
    Ok(Received { event, metadata, attempt })
}

/// All subscribers of one service.
pub(crate) struct Registry<Context = Tx> {
    subscribers: Vec<Arc<dyn ErasedSubscriber<Context>>>,
}

impl<Context> Clone for Registry<Context> {
    fn clone(&self) -> Self {
        Self { subscribers: self.subscribers.clone() }
    }
}

impl<Context> Default for Registry<Context> {
    fn default() -> Self {
        Self { subscribers: Vec::new() }
    }
}

impl<Context: Send + 'static> Registry<Context> {
    pub(crate) fn add(&mut self, subscriber: impl Subscriber<Context>) {
        self.subscribers.push(Arc::new(Typed(subscriber)));
    }
}

impl Registry {
    pub(crate) fn add_batch(&mut self, subscriber: impl BatchSubscriber) {
        self.subscribers.push(Arc::new(TypedBatch(subscriber)));
    }
}

impl<Context> Registry<Context> {
    /// Whether every subscriber takes many facts by one call.
    pub(crate) fn takes_batches_only(&self) -> bool {
        self.iter().all(|subscriber| subscriber.takes_batches())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.subscribers.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn ErasedSubscriber<Context>>> {
        self.subscribers.iter()
    }

    /// The subscribers that hear the fact, in whatever version it arrives.
    pub(crate) fn hearing(&self, event_type: &EventType) -> Vec<Arc<dyn ErasedSubscriber<Context>>> {
        self.iter().filter(|subscriber| subscriber.event_type().same_fact(event_type)).cloned().collect()
    }

    /// A name that two subscribers share: their inboxes and derived ids would mix.
    pub(crate) fn duplicate_name(&self) -> Option<&'static str> {
        let mut names: Vec<_> = self.iter().map(|subscriber| subscriber.name()).collect();
        names.sort_unstable();
        names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }
}

impl<Context> std::fmt::Debug for Registry<Context> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|subscriber| subscriber.name())).finish()
    }
}
