//! A service from its parts: what it hears, what it serves, what time makes due. `main` of a service is this and nothing
//! else.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use sqlx::migrate::Migrator;

use crate::clock::{SharedClock, System};
use crate::delivery::Registry;
use crate::mesh::Mesh;
use crate::process;
use crate::subscriber::{BatchSubscriber, Subscriber};
use crate::timer::{self, Timer};

/// Starts a timer once the process runs.
pub(crate) type TimerStart = Box<dyn FnOnce(&Mesh) + Send>;

/// A service before it runs.
pub struct Service {
    pub(crate) name: &'static str,
    pub(crate) build: &'static str,
    pub(crate) migrations: Migrator,
    pub(crate) registry: Registry,
    pub(crate) routes: Router<Mesh>,
    pub(crate) openapi: Option<serde_json::Value>,
    pub(crate) timers: Vec<TimerStart>,
    pub(crate) clock: SharedClock,
}

impl Service {
    /// A service that hears and serves nothing yet.
    ///
    /// `name` is the domain of its facts, its NATS user and its durable consumer; `build` goes into every fact that it
    /// publishes; `migrations` are those of its own tables.
    #[must_use]
    pub fn new(name: &'static str, build: &'static str, migrations: Migrator) -> Self {
        Self {
            name,
            build,
            migrations,
            registry: Registry::default(),
            routes: Router::new(),
            openapi: None,
            timers: Vec::new(),
            clock: Arc::new(System),
        }
    }

    /// Adds a reaction to a fact. Two subscribers of one name fail the start.
    #[must_use]
    pub fn subscribe(mut self, subscriber: impl Subscriber) -> Self {
        self.registry.add(subscriber);
        self
    }

    /// Adds a reaction to many facts at once.
    #[must_use]
    pub fn subscribe_batch(mut self, subscriber: impl BatchSubscriber) -> Self {
        self.registry.add_batch(subscriber);
        self
    }

    /// Ticks `timer` about every `period`, jittered, in every replica.
    #[must_use]
    pub fn every<T: Timer>(mut self, period: Duration, timer: T) -> Self {
        let timer = Arc::new(timer);
        self.timers.push(Box::new(move |mesh: &Mesh| {
            let lifecycle = mesh.lifecycle();
            let ticks =
                timer::run(timer, period, mesh.pool().clone(), Arc::clone(mesh.context()), lifecycle.soft().clone());
            lifecycle.spawn(T::NAME, ticks);
        }));
        self
    }

    /// Serves these routes beside `/livez`, `/readyz` and `/metrics`.
    #[must_use]
    pub fn routes(mut self, routes: Router<Mesh>) -> Self {
        self.routes = self.routes.merge(routes);
        self
    }

    /// Serves this document at `/openapi.json`.
    #[must_use]
    pub fn openapi(mut self, document: serde_json::Value) -> Self {
        self.openapi = Some(document);
        self
    }

    /// Takes time, ids and randomness from `clock`.
    #[must_use]
    pub fn clock(mut self, clock: SharedClock) -> Self {
        self.clock = clock;
        self
    }

    /// Runs the process that the command line asks for, until it is told to stop. The exit codes are in `--help`.
    pub async fn main(self) -> ExitCode {
        process::main(self).await
    }

    /// Name, subscribers and facts heard, as `describe` prints them.
    #[must_use]
    pub fn description(&self) -> serde_json::Value {
        describe(self.name, self.build, &self.registry)
    }
}

/// What `describe` prints of a service.
pub(crate) fn describe<Context>(name: &str, build: &str, registry: &Registry<Context>) -> serde_json::Value {
    let subscribers: Vec<_> = registry
        .iter()
        .map(
            |subscriber| serde_json::json!({ "name": subscriber.name(), "hears": subscriber.event_type().to_string() }),
        )
        .collect();
    serde_json::json!({ "service": name, "build": build, "subscribers": subscribers })
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service")
            .field("name", &self.name)
            .field("build", &self.build)
            .field("subscribers", &self.registry)
            .finish_non_exhaustive()
    }
}

/// What can be wrong with a service before it starts.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DefinitionError {
    #[error("two subscribers are named `{0}`; the inbox could not tell them apart")]
    DuplicateSubscriber(&'static str),
}

/// Checks what a service of either kind is made of.
pub(crate) fn check<Context>(registry: &Registry<Context>) -> Result<(), DefinitionError> {
    match registry.duplicate_name() {
        Some(name) => Err(DefinitionError::DuplicateSubscriber(name)),
        None => Ok(()),
    }
}
