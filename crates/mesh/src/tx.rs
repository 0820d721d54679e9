//! A database transaction that can also speak: the only way to publish a fact.

mod part;

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use envelope::{Event, EventType, HOPS_MAX, Metadata, Timestamp, TraceContext, ids};
use sqlx::{PgConnection, PgPool, Postgres, Transaction};
use uuid::Uuid;

use crate::context::ServiceContext;
use crate::outbox::{self, PublishError, StagedFact};
use crate::subscriber::Received;

/// What a transaction is a reaction to: the fact (or the drawn root of a new flow) that its own facts name as their cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The id of the causing fact.
    pub event_id: Uuid,
    /// The flow that the causing fact belongs to.
    pub correlation_id: Uuid,
    /// How many reactions lie between the flow's root and the causing fact.
    pub hops: u16,
}

impl From<&Metadata> for Cause {
    fn from(metadata: &Metadata) -> Self {
        Self { event_id: metadata.id, correlation_id: metadata.correlation_id, hops: metadata.hops }
    }
}

/// Where the facts of a transaction come from.
#[derive(Debug, Clone)]
enum Origin {
    /// A request from outside; the first fact takes the drawn id, the others derive theirs from it.
    Root { id: Uuid },
    /// A reaction to a fact, or a later step of a flow that a timer takes.
    Reaction(Cause),
    /// Reactions to many facts: each published fact names its own cause.
    Batch,
}

/// Where one fact comes from.
struct Lineage<'a> {
    origin: &'a Origin,
    /// How many facts of the same origin were staged before it.
    ordinal: u32,
    trace: Option<TraceContext>,
}

/// One transaction of a service's database. Dropping it without [`Tx::commit`] undoes everything.
///
/// It dereferences to the connection, so queries take `&mut **tx`. Facts given to [`Tx::publish`] are staged in memory and
/// inserted by one statement just before the commit, when the business statements hold their locks: for one key, the
/// order in the outbox is the order of the commits.
#[derive(Debug)]
pub struct Tx {
    inner: Transaction<'static, Postgres>,
    context: Arc<ServiceContext>,
    /// Name of the subscriber, operation or timer: part of every derived id, so durable.
    emitter: String,
    origin: Origin,
    trace: Option<TraceContext>,
    staged: Vec<StagedFact>,
    /// How many facts were staged before the part of the transaction that runs now.
    staged_before: usize,
    /// Facts of this part by the fact that they react to, where they name it themselves.
    by_cause: HashMap<Uuid, u32>,
}

impl Tx {
    /// Begins a transaction for a request from outside. `root_id` is the id that the first published fact will carry.
    pub(crate) async fn begin_root(
        pool: &PgPool,
        context: &Arc<ServiceContext>,
        operation: &str,
        root_id: Uuid,
    ) -> sqlx::Result<Self> {
        Self::begin(pool, context, operation, Origin::Root { id: root_id }).await
    }

    /// Begins a transaction that reacts to `cause`.
    pub(crate) async fn begin_reaction(
        pool: &PgPool,
        context: &Arc<ServiceContext>,
        name: &str,
        cause: Cause,
    ) -> sqlx::Result<Self> {
        Self::begin(pool, context, name, Origin::Reaction(cause)).await
    }

    async fn begin(pool: &PgPool, context: &Arc<ServiceContext>, name: &str, origin: Origin) -> sqlx::Result<Self> {
        Ok(Self::around(pool.begin().await?, context, name, origin))
    }

    fn around(
        inner: Transaction<'static, Postgres>,
        context: &Arc<ServiceContext>,
        name: &str,
        origin: Origin,
    ) -> Self {
        Self {
            inner,
            emitter: format!("{}/{name}", context.name),
            context: Arc::clone(context),
            origin,
            trace: crate::telemetry::trace::current_context(),
            staged: Vec::new(),
            staged_before: 0,
            by_cause: HashMap::new(),
        }
    }

    /// Makes the facts of this transaction later steps of the flow that `cause` belongs to. For timers: a request or a
    /// delivery has its cause already. Call it before [`Tx::publish`] and [`Tx::derive_id`].
    pub fn continue_flow(&mut self, cause: Cause) {
        self.origin = Origin::Reaction(cause);
    }

    /// Stages a fact; it becomes visible to the relay with the commit, or never. Returns the fact's id, which is the same
    /// whenever this handling of the same cause runs again.
    ///
    /// # Errors
    /// [`PublishError`] when the fact is not this service's own, breaks the JSON profile or a size limit, has a key that
    /// cannot be a header value, would be more than [`HOPS_MAX`] reactions away from its root, or reacts to one of many
    /// facts without saying which ([`Tx::publish_for`] does).
    pub fn publish<E: Event>(&mut self, event: &E) -> Result<Uuid, PublishError> {
        let ordinal = u32::try_from(self.staged.len() - self.staged_before).unwrap_or(u32::MAX);
        let lineage = Lineage { origin: &self.origin, ordinal, trace: self.trace.clone() };
        let staged = self.stage(event, &lineage)?;
        let id = staged.event_id;
        self.staged.push(staged);
        Ok(id)
    }

    /// Stages a fact that reacts to one of the facts that a [`BatchSubscriber`](crate::BatchSubscriber) received. Its id is
    /// the same in whatever company the received fact comes again.
    ///
    /// # Errors
    /// As [`Tx::publish`].
    pub fn publish_for<R, E: Event>(&mut self, received: &Received<R>, event: &E) -> Result<Uuid, PublishError> {
        let cause = Cause::from(&received.metadata);
        let ordinal = self.by_cause.get(&cause.event_id).copied().unwrap_or_default();
        let origin = Origin::Reaction(cause);
        let trace = received.metadata.trace.clone().or_else(|| self.trace.clone());
        let staged = self.stage(event, &Lineage { origin: &origin, ordinal, trace })?;
        let id = staged.event_id;
        self.by_cause.insert(received.metadata.id, ordinal.saturating_add(1));
        self.staged.push(staged);
        Ok(id)
    }

    fn stage<E: Event>(&self, event: &E, lineage: &Lineage<'_>) -> Result<StagedFact, PublishError> {
        if E::DOMAIN != self.context.name {
            return Err(PublishError::ForeignFact { domain: E::DOMAIN, service: self.context.name });
        }
        let metadata = self.metadata::<E>(event.key(), lineage)?;
        StagedFact::new(&metadata, event)
    }

    fn metadata<E: Event>(&self, key: String, lineage: &Lineage<'_>) -> Result<Metadata, PublishError> {
        let ordinal = lineage.ordinal;
        let (id, correlation_id, causation_id, hops) = match lineage.origin {
            Origin::Batch => return Err(PublishError::NoCause),
            Origin::Root { id } => {
                let flow = key.parse().map_err(|_| PublishError::RootKey { key: key.clone() })?;
                match ordinal {
                    0 => (*id, flow, None, 0),
                    _ => (ids::derive(*id, &self.emitter, ordinal), flow, Some(*id), 1),
                }
            }
            Origin::Reaction(cause) => {
                let hops = cause.hops.saturating_add(1);
                let id = ids::derive(cause.event_id, &self.emitter, ordinal);
                (id, cause.correlation_id, Some(cause.event_id), hops)
            }
        };
        if hops > HOPS_MAX {
            return Err(PublishError::TooManyHops { hops });
        }
        Ok(Metadata {
            id,
            source: format!("urn:mesh:{}", self.context.name),
            event_type: EventType::of::<E>(),
            // The row's `occurred_at` and `key_version` give the real values, see `outbox`.
            time: Timestamp::from_offset(time::OffsetDateTime::UNIX_EPOCH),
            key,
            revision: E::REVISION,
            correlation_id,
            causation_id,
            sequence: 0,
            emitter: format!("{}@{}", self.emitter, self.context.build),
            hops,
            trace: lineage.trace.clone(),
            occurrence_id: None,
            extensions: Vec::new(),
        })
    }

    /// An id for something that this handling creates (a payment, a refund). The same whenever it runs again for the same
    /// cause; different for every `label`. A [`BatchSubscriber`](crate::BatchSubscriber) uses [`Tx::derive_id_for`]: its
    /// facts have no cause in common, and here it gets the same id for all of them.
    #[must_use]
    pub fn derive_id(&self, label: &str) -> Uuid {
        let cause = match &self.origin {
            Origin::Root { id } => *id,
            Origin::Reaction(cause) => cause.event_id,
            Origin::Batch => Uuid::nil(),
        };
        ids::derive_named(cause, &self.emitter, label)
    }

    /// An id for something that a batch creates in reaction to one of its facts.
    #[must_use]
    pub fn derive_id_for<R>(&self, received: &Received<R>, label: &str) -> Uuid {
        ids::derive_named(received.metadata.id, &self.emitter, label)
    }

    /// What this transaction reacts to; none for a request from outside, and none for a batch, whose facts each have their
    /// own.
    #[must_use]
    pub fn cause(&self) -> Option<&Cause> {
        match &self.origin {
            Origin::Root { .. } | Origin::Batch => None,
            Origin::Reaction(cause) => Some(cause),
        }
    }

    /// How many facts this handling has staged.
    #[must_use]
    pub fn staged_count(&self) -> usize {
        self.staged.len() - self.staged_before
    }

    /// Inserts the staged facts and commits; then wakes the relay.
    ///
    /// An error of the COMMIT itself leaves the outcome *unknown*: the work is repeated, and the inbox or the idempotency
    /// key decides.
    pub(crate) async fn commit(mut self) -> sqlx::Result<()> {
        if self.staged.is_empty() {
            // A statement that failed, and whose error the handler swallowed, has aborted the transaction. COMMIT would roll
            // it back and still report success; any other statement says so.
            sqlx::query!("select 1 as sound").fetch_one(&mut *self.inner).await?;
            return self.inner.commit().await;
        }
        outbox::insert(&mut self.inner, &self.staged).await?;
        self.inner.commit().await?;
        self.context.wake.facts_committed();
        Ok(())
    }

    /// Ends the transaction without effect and waits for it, so that the connection returns clean to its pool.
    pub(crate) async fn rollback(self) -> sqlx::Result<()> {
        self.inner.rollback().await
    }
}

impl Deref for Tx {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.inner
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.inner
    }
}
