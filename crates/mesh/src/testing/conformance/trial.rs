//! One subscriber on one prepared database.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use envelope::RawMessage;
use sqlx::PgPool;

use super::snapshot::Snapshot;
use super::wire::Wire;
use super::{ConformanceError, Outcome, Rule, TestBed};
use crate::delivery::{Delivery, ErasedSubscriber, Incoming, Next, SqlInbox, Unit, Verdict};

/// A database, the service on it, and the wire between them.
pub(super) struct Trial<G> {
    pub(super) bed: TestBed,
    pub(super) wire: Wire,
    pub(super) subscriber: Arc<dyn ErasedSubscriber>,
    delivery: Delivery,
    /// What the database lives as long as.
    _kept: G,
}

impl<G> Trial<G> {
    pub(super) async fn begin((kept, bed): (G, TestBed), subscriber: &str) -> Outcome<Self> {
        let named = bed.registry.iter().find(|known| known.name() == subscriber).cloned();
        let named = named.with_context(|| format!("the service has no subscriber `{subscriber}`"))?;
        let wire = Wire::open(&bed.pool().connect_options()).await.context("the wire to the database")?;
        let context = Arc::clone(bed.mesh.context());
        let inbox = SqlInbox::new(wire.pool().clone(), Arc::clone(&context));
        // A version from the future is not waited for here.
        let delivery = Delivery::new(inbox, context, Duration::ZERO);
        Ok(Self { bed, wire, subscriber: named, delivery, _kept: kept })
    }

    pub(super) fn pool(&self) -> &PgPool {
        self.bed.pool()
    }

    pub(super) fn name(&self) -> &'static str {
        self.subscriber.name()
    }

    /// Delivers a message to the subscriber, and to no other of the service.
    pub(super) async fn deliver(&self, raw: &RawMessage, redelivered: bool) -> Verdict {
        let incoming = self.incoming(raw, redelivered);
        let mut next = Next::on_arrival(&incoming);
        self.delivery.deliver(&self.subscriber, &incoming, &mut next).await
    }

    /// Delivers messages in one transaction. None for each that this transaction did not settle.
    pub(super) async fn deliver_together(&self, raws: &[&RawMessage]) -> Vec<Option<Verdict>> {
        let unit = |raw: &&RawMessage| Unit {
            subscriber: Arc::clone(&self.subscriber),
            incoming: self.incoming(raw, false),
            span: tracing::Span::current(),
        };
        self.delivery.deliver_together(raws.iter().map(unit).collect()).await
    }

    pub(super) fn incoming(&self, raw: &RawMessage, redelivered: bool) -> Arc<Incoming> {
        Arc::new(Incoming::new(raw.clone(), 1, self.bed.stored_at, redelivered))
    }

    /// What the service holds now.
    pub(super) async fn snapshot(&self) -> Outcome<Snapshot> {
        Ok(Snapshot::take(self.pool()).await?)
    }

    pub(super) fn broken<T>(&self, rule: Rule, seen: impl Into<String>) -> Outcome<T> {
        Err(ConformanceError::Broken { subscriber: self.name().to_owned(), rule, seen: seen.into() })
    }
}

/// Whether the handler did its work.
pub(super) fn is_handled(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Handled | Verdict::Compensated(_) | Verdict::NoEffect(_))
}
