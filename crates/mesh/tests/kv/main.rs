//! Services without a database on a real nats-server: what is delivered to them, and what becomes of it when things end.

#![expect(clippy::unwrap_used, reason = "steps that several tests share fail a test as the tests themselves do")]
#![expect(clippy::panic, reason = "handlers that panic are among what is tested")]

mod buckets;
mod crashes;
mod deliveries;
mod kept;
mod outages;
mod probe;
mod world;
