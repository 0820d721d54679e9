//! `dead show`.

use std::fmt;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::letter::Letter;
use super::list::not_found;
use super::select::LetterName;
use crate::broker::{Broker, RequestError};
use crate::control;
use crate::outcome::Outcome;
use crate::output::Format;

/// The code of what there is not.
const NOT_FOUND: u64 = 404;

/// Which letter.
#[derive(Debug, Clone, Args)]
pub struct Show {
    /// Its service and number, e.g. payments/17
    letter: LetterName,
    /// Its service, for a number alone
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
}

/// A letter with everything about it.
#[derive(Debug, Serialize, Deserialize)]
struct Shown {
    #[serde(default)]
    history: Vec<Attempt>,
    subject: String,
    /// Pairs of name and value.
    headers: Value,
    payload_base64: String,
    payload_text: Option<String>,
    waits_for: Option<Uuid>,
    behind_count: u64,
    can_be_redriven: bool,
    #[serde(flatten)]
    letter: Letter,
}

/// One attempt.
#[derive(Debug, Serialize, Deserialize)]
struct Attempt {
    attempt: u32,
    at: String,
    error: String,
    build: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Show {
    pub(super) async fn run(self, broker: &Broker, format: Format) -> anyhow::Result<Outcome> {
        let (service, id) = self.letter.resolve(self.service.as_deref())?;
        match control::ask_for::<Shown>(broker, &service, "dead.show", &json!({ "id": id })).await {
            Ok(shown) => format.print(&shown)?,
            Err(RequestError::Api { code: NOT_FOUND, .. }) => return Err(not_found(&format!("{service}/{id}"))),
            Err(error) => return Err(error.during(format!("cannot ask {service} for a dead letter"))),
        }
        Ok(Outcome::Yes)
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = &self.letter;
        writeln!(f, "{}: {}, {}", letter.name(), letter.state, letter.reason)?;
        writeln!(f, "  {}", letter.detail)?;
        writeln!(f, "  fact {} ({}) for {}", letter.event_id, letter.event_type, letter.subscriber)?;
        writeln!(f, "  key {}, kept at {} after {} attempts", letter.key, letter.kept_at, letter.attempts)?;
        for (name, what) in [("discarded_by", "discarded by"), ("discard_reason", "because")] {
            if let Some(value) = letter.rest.get(name).and_then(Value::as_str) {
                writeln!(f, "  {what} {value}")?;
            }
        }
        if let Some(event) = self.waits_for {
            writeln!(f, "  waits for {event} of the same key")?;
        }
        if self.behind_count > 0 {
            writeln!(f, "  {} of the same key wait behind it", self.behind_count)?;
        }
        if !self.can_be_redriven {
            writeln!(f, "  too old to be redriven: the inbox does not remember it any more")?;
        }
        writeln!(f, "\nattempts:")?;
        for Attempt { attempt, at, error, build, .. } in &self.history {
            let build = build.as_ref().map(|build| format!(" in {build}")).unwrap_or_default();
            writeln!(f, "  {attempt} at {at}{build}: {error}")?;
        }
        writeln!(f, "\n{}", self.subject)?;
        for header in self.headers.as_array().into_iter().flatten() {
            let part = |index: usize| header.get(index).and_then(Value::as_str).unwrap_or_default().escape_debug();
            writeln!(f, "  {}: {}", part(0), part(1))?;
        }
        match &self.payload_text {
            Some(text) => write!(f, "\n{}", text.escape_debug().to_string().replace("\\\"", "\"")),
            None => write!(f, "\nno text, in base64: {}", self.payload_base64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_shown_with_its_attempts_and_its_bytes() {
        let shown: Shown = serde_json::from_value(json!({
            "service": "payments", "build": "1.2", "id": 17, "subscriber": "charge-customer",
            "event_id": Uuid::from_u128(1), "event_type": "orders.order_created.v1", "key": "k1", "state": "dead",
            "reason": "rejected", "detail": "no such account", "attempts": 2, "kept_at": "2026-01-31T09:30:00Z",
            "history": [{ "attempt": 2, "at": "2026-01-31T10:00:00Z", "error": "no such account", "build": "1.2" }],
            "subject": "evt.orders.order_created.v1.7", "headers": [["ce-id", "x\u{7}"]], "payload_base64": "eyJhIjoxfQ==",
            "payload_text": "{\"a\":1}", "waits_for": null, "behind_count": 3, "can_be_redriven": true
        }))
        .unwrap();
        let expected = "\
payments/17: dead, rejected
  no such account
  fact 00000000-0000-0000-0000-000000000001 (orders.order_created.v1) for charge-customer
  key k1, kept at 2026-01-31T09:30:00Z after 2 attempts
  3 of the same key wait behind it

attempts:
  2 at 2026-01-31T10:00:00Z in 1.2: no such account

evt.orders.order_created.v1.7
  ce-id: x\\u{7}

{\"a\":1}";
        assert_eq!(shown.to_string(), expected);
    }
}
