//! The test bed against real servers.

#![expect(clippy::unwrap_used, reason = "steps that several tests share fail a test as the tests themselves do")]

mod install;
mod nats;
mod postgres;
mod process;
mod proxy;
mod python;
