//! The subscribers of a service with their types erased, found by the fact that they hear.

use std::pin::Pin;
use std::sync::Arc;

use envelope::{DecodeError, EventType, RawMessage, decode};

use super::Outage;
use crate::failure::Failure;
use crate::subscriber::{Handled, Policy, Received, Subscriber};
use crate::tx::Tx;

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A subscriber whose event type is forgotten. Its handler works in a `Context`.
pub(crate) trait ErasedSubscriber<Context = Tx>: Send + Sync {
    fn name(&self) -> &'static str;
    fn policy(&self) -> Policy;
    fn event_type(&self) -> EventType;
    /// Decodes the message; the result runs the handler.
    fn prepare(self: Arc<Self>, raw: &RawMessage, attempt: u32) -> Result<Box<dyn Prepared<Context>>, DecodeError>;

    /// Whether what the handler needs answers.
    fn probe(&self) -> BoxFuture<'_, Result<(), Outage>>;
}

/// A decoded message in front of its handler.
pub(crate) trait Prepared<Context = Tx>: Send {
    fn run<'a>(self: Box<Self>, context: &'a mut Context) -> BoxFuture<'a, Result<Handled, Failure>>;
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
        let (metadata, event) = decode::<S::Event>(raw)?;
        Ok(Box::new(Pending { subscriber: self, received: Received { event, metadata, attempt } }))
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

impl<Context> Registry<Context> {
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
