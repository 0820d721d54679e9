//! What the demonstration found.

use std::fmt;

use serde::Serialize;
use serde_json::json;

use super::scenario::Scenario;
use crate::dev::demo_data::{CURRENCY, SCALE};
use crate::flows::phrase::money;
use crate::flows::timeline::Timeline;
use crate::shop::Order;

/// All four orders.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) orders: Vec<Ended>,
}

/// How one order ended.
#[derive(Debug, Serialize)]
pub(super) struct Ended {
    /// Which of the four.
    pub(super) title: &'static str,
    /// The order at last.
    pub(super) order: Order,
    /// Its story.
    pub(super) timeline: Option<Timeline>,
    /// What it moved.
    #[serde(flatten)]
    pub(super) moved: Moved,
    /// What is not as it has to be.
    pub(super) problems: Vec<String>,
}

/// What an order moved.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Moved {
    /// Minor units that the customer has less than before.
    pub(super) charged: i64,
    /// Pieces that are reserved more than before.
    pub(super) reserved: i64,
    /// Mails that the customer was sent.
    pub(super) mails: usize,
}

/// The facts that a customer is told of.
const TOLD: [&str; 3] = ["orders.order_confirmed", "orders.order_cancelled", "payments.refund_issued"];

impl Report {
    pub(super) fn all_right(&self) -> bool {
        self.orders.iter().all(|order| order.problems.is_empty())
    }
}

impl Ended {
    /// Compares how an order ended with how it has to.
    pub(super) fn new(scenario: &Scenario, order: Order, timeline: Option<Timeline>, moved: Moved) -> Self {
        let Moved { charged, reserved, mails } = moved;
        let told = scenario.facts.iter().filter(|fact| TOLD.contains(fact)).count();
        let mut problems = Vec::new();
        let mut expect = |right: bool, problem: String| {
            if !right {
                problems.push(problem);
            }
        };
        expect(order.status == scenario.status, format!("it is {}, not {}", order.status, scenario.status));
        let reason = order.cancel_reason.as_deref();
        expect(reason == scenario.reason, format!("its reason is {reason:?}, not {:?}", scenario.reason));
        expect(charged == scenario.charged, format!("it costs {charged}, not {}", scenario.charged));
        expect(reserved == scenario.reserved, format!("it keeps {reserved} reserved, not {}", scenario.reserved));
        expect(mails == told, format!("its customer was sent {mails} mails, not {told}"));
        match &timeline {
            None => expect(false, "the stream has no fact of it".to_owned()),
            Some(timeline) => {
                let facts = facts(timeline);
                let expected = sorted(scenario.facts.to_vec());
                expect(facts == expected, format!("its facts are {}, not {}", facts.join(", "), expected.join(", ")));
                expect(timeline.finished, "its flow is not finished".to_owned());
                timeline.anomalies.iter().for_each(|anomaly| expect(false, anomaly.clone()));
            }
        }
        Self { title: scenario.title, order, timeline, moved, problems }
    }
}

/// The names of the facts of a flow, sorted.
pub(super) fn facts(timeline: &Timeline) -> Vec<&str> {
    sorted(timeline.facts.iter().map(crate::flows::timeline::TimelineFact::fact).collect())
}

fn sorted(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, order) in self.orders.iter().enumerate() {
            writeln!(f, "{}. {order}", number + 1)?;
        }
        let right = self.orders.iter().filter(|order| order.problems.is_empty()).count();
        match self.orders.len() {
            all if all == right => write!(f, "All {all} orders ended right: facts, money and stock agree."),
            all => write!(f, "{right} of {all} orders ended right."),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.title.to_uppercase())?;
        self.timeline.iter().try_for_each(|timeline| writeln!(f, "{timeline}"))?;
        let charged = json!({ "minor": self.moved.charged, "currency": CURRENCY, "scale": SCALE });
        let charged = money(&charged).unwrap_or_default();
        let Moved { reserved, mails, .. } = self.moved;
        writeln!(f, "The customer paid {charged} in all; pieces reserved: {reserved}; mails sent: {mails}.")?;
        self.problems.iter().try_for_each(|problem| writeln!(f, "WRONG: {problem}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::super::scenario::ALL;
    use super::*;

    fn order(status: &str, reason: Option<&str>) -> Order {
        let order = json!({ "order_id": Uuid::nil(), "status": status, "cancel_reason": reason });
        serde_json::from_value(order).unwrap()
    }

    #[test]
    fn every_way_to_end_wrong_is_a_problem() {
        let [confirmed, _, refunded, _] = ALL;
        let problems = |scenario: &Scenario, order: Order, (charged, reserved, mails): (i64, i64, usize)| {
            Ended::new(scenario, order, None, Moved { charged, reserved, mails }).problems
        };
        let no_facts = "the stream has no fact of it";
        assert_eq!(problems(&confirmed, order("confirmed", None), (1_999, 1, 1)), [no_facts]);
        assert_eq!(
            problems(&confirmed, order("pending", None), (0, 0, 0)),
            [
                "it is pending, not confirmed",
                "it costs 0, not 1999",
                "it keeps 0 reserved, not 1",
                "its customer was sent 0 mails, not 1",
                no_facts
            ]
        );
        assert_eq!(
            problems(&refunded, order("cancelled", Some("deadline")), (1_999, 0, 2)),
            ["its reason is Some(\"deadline\"), not Some(\"out_of_stock\")", "it costs 1999, not 0", no_facts]
        );
    }

    #[test]
    fn one_wrong_order_makes_the_demonstration_wrong() {
        let [confirmed, ..] = ALL;
        let wrong = Ended::new(&confirmed, order("pending", None), None, Moved { charged: 0, reserved: 0, mails: 0 });
        let report = Report { orders: vec![wrong] };
        assert!(!report.all_right());
        let text = report.to_string();
        assert!(text.contains("WRONG: it is pending, not confirmed") && text.ends_with("0 of 1 orders ended right."));
    }
}
