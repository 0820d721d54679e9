//! The subscribers of a service with their types erased, found by the fact that they hear.

use std::pin::Pin;
use std::sync::Arc;

use envelope::{DecodeError, EventType, RawMessage, decode};

use crate::failure::Failure;
use crate::subscriber::{Handled, Policy, Received, Subscriber};
use crate::tx::Tx;

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A subscriber whose event type is forgotten.
pub(crate) trait ErasedSubscriber: Send + Sync {
    fn name(&self) -> &'static str;
    fn policy(&self) -> Policy;
    fn event_type(&self) -> EventType;
    /// Decodes the message; the result runs the handler.
    fn prepare(self: Arc<Self>, raw: &RawMessage, attempt: u32) -> Result<Box<dyn Prepared>, DecodeError>;
}

/// A decoded message in front of its handler.
pub(crate) trait Prepared: Send {
    fn run<'a>(self: Box<Self>, tx: &'a mut Tx) -> BoxFuture<'a, Result<Handled, Failure>>;
}

struct Typed<S>(S);

struct Pending<S: Subscriber> {
    subscriber: Arc<Typed<S>>,
    received: Received<S::Event>,
}

impl<S: Subscriber> ErasedSubscriber for Typed<S> {
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
        let (metadata, event) = decode::<S::Event>(raw)?;
        Ok(Box::new(Pending { subscriber: self, received: Received { event, metadata, attempt } }))
    }
}

impl<S: Subscriber> Prepared for Pending<S> {
    fn run<'a>(self: Box<Self>, tx: &'a mut Tx) -> BoxFuture<'a, Result<Handled, Failure>> {
        Box::pin(async move { self.subscriber.0.handle(tx, self.received).await })
    }
}

/// All subscribers of one service.
#[derive(Clone, Default)]
pub(crate) struct Registry {
    subscribers: Vec<Arc<dyn ErasedSubscriber>>,
}

impl Registry {
    pub(crate) fn add(&mut self, subscriber: impl Subscriber) {
        self.subscribers.push(Arc::new(Typed(subscriber)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.subscribers.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn ErasedSubscriber>> {
        self.subscribers.iter()
    }

    /// The subscribers that hear the fact, in whatever version it arrives.
    pub(crate) fn hearing(&self, event_type: &EventType) -> Vec<Arc<dyn ErasedSubscriber>> {
        self.iter().filter(|subscriber| subscriber.event_type().same_fact(event_type)).cloned().collect()
    }

    /// A name that two subscribers share: their inboxes and derived ids would mix.
    pub(crate) fn duplicate_name(&self) -> Option<&'static str> {
        let mut names: Vec<_> = self.iter().map(|subscriber| subscriber.name()).collect();
        names.sort_unstable();
        names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|subscriber| subscriber.name())).finish()
    }
}
