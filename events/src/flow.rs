//! What is expected after what: the story of an order as data, for whoever watches it.
//!
//! Nobody conducts a flow. Each service knows its own reactions; this declaration lets observers say which step is late and
//! whose it is.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    InventoryFailed, InventoryReleased, InventoryReserved, OrderCancelled, OrderConfirmed, OrderCreated,
    PaymentDeclined, PaymentProcessed, RefundIssued, fact,
};

/// How long a service may take for one step, from the time of the fact that it reacts to.
const STEP_WITHIN: Duration = Duration::from_secs(30);
/// How long an order may be pending: longer than any chain of punctual steps.
const ORDER_WITHIN: Duration = Duration::from_secs(120);

/// A kind of flow. Facts are named `<domain>.<fact>`, whatever their major.
///
/// A flow is finished when one of its `terminal` facts is there and no step is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// What it is called.
    pub name: String,
    /// The fact that begins it.
    pub entry: String,
    /// The facts that end it.
    pub terminal: Vec<String>,
    /// What is expected on the way.
    pub steps: Vec<Step>,
}

/// After `after`, one of `expect` within `within`.
///
/// A step is open while the flow holds `after` (and `given`, if one is named) and none of `expect`, in whatever order they
/// arrived. Its time runs from the later of `after` and `given`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The fact that opens the step.
    pub after: String,
    /// A second fact without which nothing is owed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<String>,
    /// Any of these settles it.
    pub expect: Vec<String>,
    /// From then on it is late, in seconds.
    #[serde(rename = "within_seconds", serialize_with = "seconds_out", deserialize_with = "seconds_in")]
    pub within: Duration,
    /// The service that owes it.
    pub owner: String,
}

fn seconds_out<S: serde::Serializer>(within: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(within.as_secs())
}

fn seconds_in<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_secs)
}

impl Flow {
    /// How long a flow may take: the longest step that only an end settles. Nothing when no step says so.
    pub fn deadline(&self) -> Option<Duration> {
        let whole = |step: &&Step| {
            step.after == self.entry
                && step.given.is_none()
                && step.expect.iter().all(|fact| self.terminal.contains(fact))
        };
        self.steps.iter().filter(whole).map(|step| step.within).max()
    }
}

impl Step {
    fn new(owner: &str, after: String, expect: impl Into<Vec<String>>) -> Self {
        Self { after, given: None, expect: expect.into(), within: STEP_WITHIN, owner: owner.to_owned() }
    }

    fn given(self, other: String) -> Self {
        Self { given: Some(other), ..self }
    }

    fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }
}

/// Every kind of flow.
pub fn all() -> Vec<Flow> {
    vec![order()]
}

/// The flow of one order.
pub fn order() -> Flow {
    let created = fact::<OrderCreated>;
    let confirmed = fact::<OrderConfirmed>;
    let cancelled = fact::<OrderCancelled>;
    let paid = fact::<PaymentProcessed>;
    let declined = fact::<PaymentDeclined>;
    let refunded = fact::<RefundIssued>;
    let reserved = fact::<InventoryReserved>;
    let failed = fact::<InventoryFailed>;
    let released = fact::<InventoryReleased>;
    Flow {
        name: "order".to_owned(),
        entry: created(),
        terminal: vec![confirmed(), cancelled()],
        steps: vec![
            Step::new("orders", created(), [confirmed(), cancelled()]).within(ORDER_WITHIN),
            // An order that is cancelled before it is charged is never charged: then nothing is owed here.
            Step::new("payments", created(), [paid(), declined(), cancelled()]),
            Step::new("inventory", paid(), [reserved(), failed(), cancelled()]),
            Step::new("orders", reserved(), [confirmed(), cancelled()]),
            Step::new("orders", declined(), [cancelled()]),
            Step::new("orders", refunded(), [cancelled()]),
            Step::new("payments", paid(), [refunded()]).given(failed()),
            Step::new("payments", paid(), [refunded()]).given(cancelled()),
            Step::new("inventory", reserved(), [released()]).given(cancelled()),
        ],
    }
}
