//! The guarantees of the runtime, against a real PostgreSQL and a real nats-server. Each test is named after what it holds.

#![expect(clippy::unwrap_used, reason = "steps that several tests share fail a test as the tests themselves do")]
#![expect(clippy::panic, reason = "handlers that panic are among what is tested")]

mod conformance;
mod consumer;
mod crash;
mod dead_letters;
mod delivery;
mod end_to_end;
mod janitor;
mod ops;
mod outbox;
mod probe;
mod reconcile;
mod relay;
mod timers;
mod world;
