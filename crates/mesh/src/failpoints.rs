//! Named places where a test makes a process die, stop, sleep or panic.
//!
//! Without the feature `failpoints` a hit compiles to nothing. With it, `MESH_FAILPOINT` arms points:
//! `relay.after_claim=3:kill` kills the process at the third hit of that point. `*` in place of the number means every
//! hit; several points are separated by `;`. Actions: `kill` (SIGKILL), `stop` (SIGSTOP), `sleep:MILLISECONDS`, `panic`.

#[cfg(feature = "failpoints")]
mod armed;

#[cfg(feature = "failpoints")]
pub(crate) use armed::{FaultError, Faults, arm, hit};

/// Every point. The names are a contract with the tests that break things; a listed point that no test ever reaches is a
/// failure of the suite.
#[cfg(feature = "failpoints")]
pub(crate) const NAMES: [&str; 21] = [
    "api.before_commit",
    "api.after_commit_before_reply",
    "relay.after_claim",
    "relay.after_publish_before_ack",
    "relay.after_ack_before_mark",
    "relay.mid_batch",
    "relay.after_mark",
    "reconcile.before_republish",
    "consume.after_receive",
    "consume.after_inbox_insert",
    "consume.after_effect_before_outbox",
    "consume.before_commit",
    "consume.after_commit_before_ack",
    "consume.after_ack",
    "gateway.after_charge_before_commit",
    "gateway.after_refund_before_commit",
    "dead.after_insert_before_term",
    "redrive.after_requeue",
    "janitor.mid_delete",
    "shutdown.drain",
    "observer.after_apply_before_cursor",
];

/// The faults that a configuration asks for. This build knows none, and refuses a configuration that asks.
#[cfg(not(feature = "failpoints"))]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {}

/// Arms nothing.
#[cfg(not(feature = "failpoints"))]
pub(crate) fn arm(_faults: &Faults) {}

/// Passes a point. This build has none.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub(crate) fn hit(_name: &'static str) {}
