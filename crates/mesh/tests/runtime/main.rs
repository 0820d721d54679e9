//! The guarantees of the runtime, against a real PostgreSQL and a real nats-server. Each test is named after what it holds.

mod consumer;
mod crash;
mod delivery;
mod end_to_end;
mod outbox;
mod probe;
mod relay;
mod world;
