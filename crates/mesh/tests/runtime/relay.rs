//! From the outbox to the stream: everything that is committed, once, in the order of its key.

mod broker_faults;
pub(crate) mod burst;
mod database_faults;
mod late_commits;
mod latency;
mod method;
mod refused;
mod replicas;
