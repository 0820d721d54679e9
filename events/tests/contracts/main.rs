//! The contracts as a reader finds them: committed files against the code, the code against the rules.

#![expect(clippy::expect_used, clippy::panic, reason = "a failing step fails the test that took it")]

mod asyncapi;
mod catalogue;
mod facts;
mod flow;
mod generated;
mod hostile;
mod needs;
mod released;
mod rules;
mod samples;
