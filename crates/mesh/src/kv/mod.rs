//! Services without a database: their memory is a bucket of JetStream's key-value store.
//!
//! What is decided about a delivery is what [`crate::delivery`] decides for every service. What differs is the guarantee: a
//! handler's effect, a mail for instance, cannot be one commit with the record of it. So the record is written before and
//! after. A claim comes before the handler, under the number of the execution; when the handler is done, the claim becomes
//! a settlement. Each write replaces exactly the revision that was read.
//!
//! An effect therefore happens **at least once**, and twice only when a process ends, or is cut off from the bucket for
//! longer than an execution may take, between the effect and its record. Whoever receives it can tell: the id of the fact
//! is the same each time. A claim that a process left behind is an execution like any other: it is counted, and the
//! delivery is tried again when the claim has stood for longer than an execution takes.

pub(crate) mod bucket;
mod declared;
mod entry;
mod inbox;
mod letters;
pub(crate) mod process;
mod service;
#[cfg(feature = "testing")]
pub(crate) mod testing;
mod upkeep;

use std::sync::Arc;

pub use bucket::{Bucket, Found, KvError, Lifetime};
pub(crate) use inbox::KvInbox;
pub use service::KvService;

use crate::broker::Broker;
use crate::context::ServiceContext;

/// What a handler without a database works in: its delivery is claimed, and is settled when it returns.
///
/// There is no transaction. Whatever the handler does should be the same when it is done again, or be recognisable as a
/// repeat by the id of its fact.
#[derive(Debug)]
pub struct Kv {
    broker: Arc<Broker>,
    context: Arc<ServiceContext>,
}

impl Kv {
    pub(crate) fn new(broker: Arc<Broker>, context: Arc<ServiceContext>) -> Self {
        Self { broker, context }
    }

    /// The service's own bucket `<name>_<service>`.
    #[must_use]
    pub fn bucket(&self, name: &str) -> Bucket {
        Bucket::new(Arc::clone(&self.broker), &bucket_name(name, self.context.name))
    }
}

/// The full name of a service's bucket.
pub(crate) fn bucket_name(name: &str, service: &str) -> String {
    format!("{name}_{service}")
}

/// What was delivered.
pub(crate) const INBOX: &str = "inbox";
/// What was kept.
pub(crate) const DEAD: &str = "dead";
