//! The shop as its users meet it: real processes, a real nats-server, real databases, faults on purpose.
//!
//! [`shop`] starts it and breaks it; [`checker`] says afterwards whether every promise was kept. The tests are in `e2e/`.

pub mod checker;
pub mod shop;
