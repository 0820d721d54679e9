//! What an operation would do, as a service tells it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The preview of one service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Preview {
    pub(super) service: String,
    pub(super) action: String,
    pub(super) token: Option<Uuid>,
    /// The size of the set.
    pub(super) eligible: u64,
    pub(super) included: u64,
    pub(super) discarded: u64,
    pub(super) already_settled: u64,
    pub(super) too_old: u64,
    pub(super) unknown_subscribers: BTreeMap<String, u64>,
    pub(super) blocked: u64,
    pub(super) more: bool,
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

impl Preview {
    /// What was asked for and cannot be done.
    pub(super) fn refused(&self) -> u64 {
        self.too_old + self.blocked + self.unknown_subscribers.values().sum::<u64>()
    }
}

impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} to {}", self.service, self.eligible, self.action)?;
        let settled = if self.action == "discard" { "discarded already" } else { "settled already" };
        for (count, what) in [
            (self.included, "of them before or behind those in their keys"),
            (self.discarded, "of them discarded before"),
            (self.already_settled, settled),
            (self.too_old, "too old: the inbox does not remember them"),
            (self.blocked, "behind one of their key that cannot be redriven"),
        ] {
            if count > 0 {
                write!(f, "\n  {count} {what}")?;
            }
        }
        for (subscriber, count) in &self.unknown_subscribers {
            write!(f, "\n  {count} of `{subscriber}`, which no build that runs has")?;
        }
        if self.more {
            write!(f, "\n  there are more than one operation takes: repeat it afterwards")?;
        }
        Ok(())
    }
}

/// Several of them.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Previews(pub(super) Vec<Preview>);

impl fmt::Display for Previews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|preview| writeln!(f, "{preview}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_preview_says_what_is_taken_and_what_is_not_and_why() {
        let preview: Preview = serde_json::from_value(json!({
            "service": "payments", "action": "redrive", "token": Uuid::from_u128(1), "valid_seconds": 300, "eligible": 9,
            "included": 2, "discarded": 0, "already_settled": 1, "too_old": 1, "unknown_subscribers": { "bill": 4 },
            "blocked": 0, "more": false
        }))
        .unwrap();
        let expected = "\
payments: 9 to redrive
  2 of them before or behind those in their keys
  1 settled already
  1 too old: the inbox does not remember them
  4 of `bill`, which no build that runs has";
        assert_eq!(preview.to_string(), expected);
        assert_eq!(preview.refused(), 5);
    }
}
