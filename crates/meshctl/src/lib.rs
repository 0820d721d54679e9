//! The command line of the mesh: runs one on a developer's machine, declares stream and permissions, and answers what
//! happened to an order and why it is not finished.
//!
//! Verbs talk to services through NATS, as the user `operator`, and never to their databases. What a verb decides is pure
//! and apart from what it asks the servers.

pub mod broker;
pub mod catalogue;
pub mod cli;
mod clock;
pub mod confirm;
pub mod contracts;
pub mod control;
mod credentials;
pub mod dead;
pub mod declaration;
pub mod demo;
pub mod dev;
pub mod doctor;
pub mod flows;
pub mod graph;
pub mod load;
pub mod nats;
pub mod operation;
pub mod ops;
pub mod order;
pub mod outbox;
pub mod outcome;
pub mod output;
pub mod permissions;
pub mod reconcile;
pub mod shop;
pub mod streams;
pub mod target;
