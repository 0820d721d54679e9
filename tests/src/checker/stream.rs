//! The stream as it is stored, and the facts in it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use uuid::Uuid;

use super::Expected;

/// One stored message.
#[derive(Debug, Clone, Default)]
pub struct Stored {
    /// Its place in the stream.
    pub sequence: u64,
    /// Its subject.
    pub subject: String,
    /// Its headers, in order.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Stored {
    /// The first value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    fn id_in(&self, name: &str) -> Option<Uuid> {
        self.header(name)?.parse().ok()
    }

    /// `ce-id`.
    #[must_use]
    pub fn id(&self) -> Option<Uuid> {
        self.id_in("ce-id")
    }

    /// `ce-causationid`.
    #[must_use]
    pub fn cause(&self) -> Option<Uuid> {
        self.id_in("ce-causationid")
    }

    /// `ce-correlationid`: the order.
    #[must_use]
    pub fn flow(&self) -> Option<Uuid> {
        self.id_in("ce-correlationid")
    }

    /// `ce-type`: `<domain>.<fact>.v<major>`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.header("ce-type").unwrap_or_default()
    }

    /// The service that says it.
    #[must_use]
    pub fn service(&self) -> &str {
        let source = self.header("ce-source").unwrap_or_default();
        source.strip_prefix("urn:mesh:").unwrap_or(source)
    }

    /// `ce-partitionkey`.
    #[must_use]
    pub fn key(&self) -> &str {
        self.header("ce-partitionkey").unwrap_or_default()
    }

    /// `ce-sequence`.
    #[must_use]
    pub fn key_version(&self) -> Option<i64> {
        self.header("ce-sequence")?.parse().ok()
    }

    /// `mesh-hops`.
    #[must_use]
    pub fn hops(&self) -> Option<u32> {
        self.header("mesh-hops")?.parse().ok()
    }

    /// The body; null when it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// What makes two messages of one id the same fact.
    #[must_use]
    pub fn content(&self) -> (&str, &str, &[u8]) {
        (self.kind(), self.key(), &self.body)
    }
}

/// The facts that services committed: the first occurrence of each id, in stream order.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    /// First occurrences.
    pub(super) first: Vec<&'a Stored>,
    /// Every message that the run did not forge, repeats included.
    pub(super) all: Vec<&'a Stored>,
    of_order: BTreeMap<Uuid, Vec<&'a Stored>>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(stream: &'a [Stored], expected: &Expected) -> Facts<'a> {
        let all: Vec<&Stored> = stream.iter().filter(|stored| !expected.forged.contains(&stored.sequence)).collect();
        let mut seen = BTreeSet::new();
        let first: Vec<&Stored> = all.iter().copied().filter(|stored| seen.insert(stored.id())).collect();
        let mut of_order: BTreeMap<Uuid, Vec<&Stored>> = BTreeMap::new();
        for fact in &first {
            of_order.entry(fact.flow().unwrap_or_default()).or_default().push(fact);
        }
        Facts { first, all, of_order }
    }

    /// The facts of one order, in stream order.
    pub(super) fn of_order(&self, order_id: Uuid) -> &[&'a Stored] {
        self.of_order.get(&order_id).map_or(&[], Vec::as_slice)
    }

    /// The facts of one order that are of this kind.
    pub(super) fn of_kind(&self, order_id: Uuid, kind: &str) -> Vec<&'a Stored> {
        self.of_order(order_id).iter().copied().filter(|fact| fact.kind() == kind).collect()
    }
}
