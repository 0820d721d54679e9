//! The command line of the mesh: runs one on a developer's machine, declares stream and permissions, and answers what
//! happened to an order and why it is not finished.
//!
//! Verbs talk to services through NATS, as the user `operator`, and never to their databases. What a verb decides is pure
//! and apart from what it asks the servers.

pub mod broker;
pub mod cli;
mod clock;
mod credentials;
pub mod declaration;
pub mod dev;
pub mod flows;
pub mod nats;
pub mod outcome;
pub mod output;
pub mod permissions;
pub mod streams;
pub mod target;
