//! What every part of one service process shares.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use uuid::Uuid;

use crate::clock::SharedClock;
use crate::ops::Ops;

/// Identity and shared signals of one service process.
#[derive(Debug)]
pub struct ServiceContext {
    /// Name of the service: the domain of its facts, its NATS user, its durable consumer.
    pub name: &'static str,
    /// Version of the binary, part of `ce-emitter`.
    pub build: &'static str,
    /// This process, among the replicas of the service.
    pub instance: Uuid,
    /// Time, ids and randomness.
    pub clock: SharedClock,
    /// Wakes the relay after a commit.
    pub wake: Wake,
    /// What outsiders are told about the process.
    pub ops: Ops,
}

impl ServiceContext {
    /// A context for the service `name` in build `build`.
    #[must_use]
    pub fn new(name: &'static str, build: &'static str, clock: SharedClock) -> Arc<Self> {
        let instance = clock.draw_id();
        Arc::new(Self { name, build, instance, clock, wake: Wake::default(), ops: Ops::default() })
    }
}

/// Tells the relay of this process, and through it the relays of the other replicas, that facts were committed.
///
/// It is a hint, lossy by design: the relay's poll is the truth.
#[derive(Debug, Default)]
pub struct Wake {
    relay: Notify,
    peers: Notify,
    /// The relay of this process holds every lease: the other replicas need no hint.
    alone: AtomicBool,
}

impl Wake {
    /// Raised after a commit returned, never before.
    pub(crate) fn facts_committed(&self) {
        self.relay.notify_one();
        if !self.alone.load(Ordering::Relaxed) {
            self.peers.notify_one();
        }
    }

    pub(crate) fn set_alone(&self, alone: bool) {
        self.alone.store(alone, Ordering::Relaxed);
    }

    /// Raised when another replica says so.
    pub(crate) fn peer_committed(&self) {
        self.relay.notify_one();
    }

    /// Waits for the next hint for the relay. A hint that came since the last wait returns at once.
    pub(crate) async fn for_relay(&self) {
        self.relay.notified().await;
    }

    /// Waits until there is something to tell the other replicas.
    pub(crate) async fn for_peers(&self) {
        self.peers.notified().await;
    }
}
