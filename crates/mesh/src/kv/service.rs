//! A service without a database, from its parts.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use super::{Kv, process};
use crate::clock::{SharedClock, System};
use crate::delivery::Registry;
use crate::service::{Service, describe};
use crate::subscriber::Subscriber;

/// A service without a database before it runs. It hears facts and publishes none: there is nothing that a fact could be
/// committed with.
pub struct KvService {
    pub(crate) name: &'static str,
    pub(crate) build: &'static str,
    pub(crate) registry: Registry<Kv>,
    pub(crate) buckets: Vec<&'static str>,
    pub(crate) clock: SharedClock,
}

impl Service {
    /// A service that has no database, and hears nothing yet.
    ///
    /// `name` is its NATS user, its durable consumer, and the end of the names of its buckets: `inbox_<name>` remembers
    /// what was delivered and `dead_<name>` keeps what was given up. All are declared in `nats/`.
    #[must_use]
    pub fn without_database(name: &'static str, build: &'static str) -> KvService {
        let (registry, clock) = (Registry::default(), Arc::new(System));
        KvService { name, build, registry, buckets: Vec::new(), clock }
    }
}

impl KvService {
    /// Adds a reaction to a fact. Two subscribers of one name fail the start.
    #[must_use]
    pub fn subscribe(mut self, subscriber: impl Subscriber<Kv>) -> Self {
        self.registry.add(subscriber);
        self
    }

    /// Uses a bucket of its own, declared as `<bucket>_<service>`: it must be there at the start.
    #[must_use]
    pub fn bucket(mut self, bucket: &'static str) -> Self {
        self.buckets.push(bucket);
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

    /// How long an execution may take, of whatever subscriber.
    pub(super) fn execution_max(&self) -> Duration {
        self.registry.iter().map(|subscriber| subscriber.policy().timeout).max().unwrap_or_default()
    }
}

impl std::fmt::Debug for KvService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KvService")
            .field("name", &self.name)
            .field("build", &self.build)
            .field("subscribers", &self.registry)
            .field("buckets", &self.buckets)
            .finish_non_exhaustive()
    }
}
