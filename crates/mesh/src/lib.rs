//! The runtime of a service on the mesh.
//!
//! A service is its subscribers, its HTTP operations and its timers; this crate gives it a transaction that can publish
//! ([`Tx`]), the relay that carries committed facts to the stream, the consumer that delivers facts to subscribers once,
//! and the process around them. Data flows one way: request, transaction, outbox, relay, stream, consumer, inbox and
//! handler in one transaction, acknowledgement.

mod broker;
mod cli;
pub mod clock;
pub mod config;
mod consumer;
mod context;
mod control;
mod dead_letter;
mod delivery;
mod failpoints;
mod failure;
pub mod http;
mod inbox;
mod janitor;
mod kv;
mod lifecycle;
mod mesh;
mod ops;
mod outbox;
mod process;
mod reconcile;
mod relay;
mod schema;
mod service;
mod subscriber;
mod task_lease;
pub mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;
mod timer;
mod tx;
mod upkeep;
mod wake;

pub use broker::STREAM;
pub use context::ServiceContext;
pub use delivery::{DeadReason, ParkReason, Retry, RetryCause, Verdict};
pub use failure::{Backoff, Failure, OrReject};
pub use kv::{Bucket, Found, Kv, KvError, KvService, Lifetime};
pub use mesh::Mesh;
pub use ops::{Ops, OpsEvent};
pub use outbox::PublishError;
pub use schema::SchemaError;
pub use service::Service;
pub use subscriber::{BatchSubscriber, Handled, Policy, Received, Subscriber};
pub use timer::{Progress, Timer};
pub use tx::{Cause, Tx};
