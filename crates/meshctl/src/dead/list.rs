//! `dead list`.

use std::fmt;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::letter::Letter;
use super::select::Filter;
use crate::broker::Broker;
use crate::control;
use crate::outcome::{Failure, Outcome};
use crate::output::Format;

/// Which page of which letters.
#[derive(Debug, Clone, Args)]
pub struct List {
    #[command(flatten)]
    filter: Filter,
    /// Letters of a page, of each service
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=200))]
    limit: u16,
    /// Go on behind this letter; needs --service
    #[arg(long, value_name = "NUMBER", requires = "service")]
    cursor: Option<i64>,
}

/// The answer of one service.
#[derive(Debug, Deserialize)]
struct Page {
    letters: Vec<Letter>,
    next_cursor: Option<i64>,
}

/// All answers.
#[derive(Debug, Default, Serialize)]
struct Letters {
    letters: Vec<Letter>,
    /// Where there are more.
    more: Vec<More>,
}

#[derive(Debug, Serialize)]
struct More {
    service: String,
    cursor: i64,
}

impl List {
    pub(super) async fn run(self, broker: &Broker, format: Format) -> anyhow::Result<Outcome> {
        let question = json!({ "filter": self.filter.members(), "limit": self.limit, "cursor": self.cursor });
        let mut all = Letters::default();
        for service in self.filter.services() {
            let page: Page = match control::ask_for(broker, &service, "dead.list", &question).await {
                Ok(page) => page,
                Err(error) => return Err(error.during(format!("cannot ask {service} for its dead letters"))),
            };
            all.take(&service, page);
        }
        format.print(&all)?;
        Ok(Outcome::from_answer(all.letters.iter().all(|letter| letter.state == "discarded")))
    }
}

impl Letters {
    fn take(&mut self, service: &str, page: Page) {
        let named = |letter: Letter| Letter { service: service.to_owned(), ..letter };
        self.letters.extend(page.letters.into_iter().map(named));
        self.more.extend(page.next_cursor.map(|cursor| More { service: service.to_owned(), cursor }));
    }
}

impl fmt::Display for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.letters.is_empty() {
            return f.write_str("no delivery was given up");
        }
        let head = ["LETTER", "STATE", "REASON", "SUBSCRIBER", "FACT", "KEY", "TRIES", "KEPT AT"].map(str::to_owned);
        let rows: Vec<[String; 8]> = std::iter::once(head).chain(self.letters.iter().map(row)).collect();
        let widths: [usize; 8] =
            std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default());
        for row in &rows {
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        for More { service, cursor } in &self.more {
            writeln!(f, "more of {service}: --service {service} --cursor {cursor}")?;
        }
        Ok(())
    }
}

fn row(letter: &Letter) -> [String; 8] {
    let text = |text: &str| text.to_owned();
    [
        letter.name(),
        text(&letter.state),
        text(&letter.reason),
        text(&letter.subscriber),
        text(&letter.event_type),
        text(&letter.key),
        letter.attempts.to_string(),
        text(&letter.kept_at),
    ]
}

/// Found here, so that a cursor without a service is refused before anything is asked.
pub(super) fn not_found(name: &str) -> anyhow::Error {
    Failure::usage(format!("there is no dead letter {name}: it may be settled by now"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use uuid::Uuid;

    use super::*;

    fn page(next_cursor: &Value) -> Page {
        serde_json::from_value(json!({
            "service": "payments", "build": "1",
            "letters": [{
                "id": 17, "subscriber": "charge-customer", "event_id": Uuid::from_u128(1),
                "event_type": "orders.order_created.v1", "key": "k1", "flow_id": null, "state": "dead", "reason": "rejected",
                "detail": "no", "attempts": 10, "kept_at": "2026-01-31T09:30:00Z", "stream_sequence": 3
            }],
            "next_cursor": next_cursor
        }))
        .unwrap()
    }

    #[test]
    fn a_table_names_each_letter_and_where_there_are_more() {
        let mut letters = Letters::default();
        letters.take("payments", page(&json!(17)));
        let expected = "\
LETTER       STATE  REASON    SUBSCRIBER       FACT                     KEY  TRIES  KEPT AT
payments/17  dead   rejected  charge-customer  orders.order_created.v1  k1   10     2026-01-31T09:30:00Z
more of payments: --service payments --cursor 17
";
        assert_eq!(letters.to_string(), expected);
        let json = serde_json::to_value(&letters).unwrap();
        assert_eq!(
            (&json["letters"][0]["service"], &json["letters"][0]["stream_sequence"]),
            (&json!("payments"), &json!(3))
        );
        assert_eq!(Letters::default().to_string(), "no delivery was given up");
    }
}
