//! The HTTP surface of a service against a real database: keys, replies, races, disconnects.

#![expect(clippy::unwrap_used, reason = "steps that several tests share fail a test as the tests themselves do")]
#![expect(clippy::panic, reason = "handlers that panic are among what is tested")]

mod idempotency;
mod races;
mod shop;
mod surface;
mod trace;
