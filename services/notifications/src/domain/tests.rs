use std::fmt::Write as _;

use envelope::Timestamp;
use events::{CancelReason, Currency, Money};
use uuid::Uuid;

use super::*;

const CUSTOMER: Uuid = Uuid::from_u128(0xc0);

fn notice(event: u128, news: News) -> Notice {
    let at: Timestamp = "2026-01-31T09:30:00.123Z".parse().unwrap();
    Notice { event_id: Uuid::from_u128(event), order_id: Uuid::from_u128(0x0d), at, news }
}

fn confirmed() -> Notice {
    notice(1, News::Confirmed)
}

fn inputs() -> [(Heard, &'static str); 4] {
    let amount = Money::new(1999, Currency::parse("EUR").unwrap()).unwrap();
    [
        (Heard::Created(CUSTOMER), "`OrderCreated`"),
        (Heard::Notice(confirmed()), "`OrderConfirmed`"),
        (Heard::Notice(notice(2, News::Cancelled { reason: CancelReason::Customer })), "`OrderCancelled`"),
        (Heard::Notice(notice(3, News::Refunded { amount })), "`RefundIssued`"),
    ]
}

fn states() -> [(Recipient, &'static str); 4] {
    let held = || vec![notice(9, News::Confirmed)];
    [
        (Recipient::default(), "nothing"),
        (Recipient { customer_id: None, held: held() }, "mails held back"),
        (Recipient { customer_id: Some(CUSTOMER), held: held() }, "the customer, and mails held back"),
        (Recipient { customer_id: Some(CUSTOMER), held: Vec::new() }, "the customer"),
    ]
}

#[test]
fn the_table_in_the_docs_is_the_code() {
    let mut table = String::from("| known about the order |");
    for (_, heading) in inputs() {
        write!(table, " {heading} |").unwrap();
    }
    writeln!(table, "\n|---|{}", "---|".repeat(inputs().len())).unwrap();
    for (known, name) in states() {
        write!(table, "| {name} |").unwrap();
        for (heard, _) in inputs() {
            write!(table, " {} |", on(known.clone(), heard)).unwrap();
        }
        table.push('\n');
    }
    let page = include_str!("../../../../docs/services/notifications.md");
    assert!(page.contains(&table), "docs/services/notifications.md must contain this table:\n{table}");
}

/// What goes out when these are heard one after the other, each handling ending as it should.
fn sent(heard: &[Heard]) -> Vec<Uuid> {
    let (mut known, mut sent) = (Recipient::default(), Vec::new());
    for input in heard {
        match on(known.clone(), input.clone()) {
            Decision::Remember(next) | Decision::Hold(next) => known = next,
            Decision::SendHeld(next) => {
                sent.extend(next.held.iter().map(|notice| notice.event_id));
                known = Recipient { held: Vec::new(), ..next };
            }
            Decision::Send(customer, notice) => {
                assert_eq!(customer, CUSTOMER);
                sent.push(notice.event_id);
            }
            Decision::Keep => {}
        }
    }
    sent.sort_unstable();
    sent
}

#[test]
fn whatever_arrives_first_each_fact_is_one_mail() {
    let inputs = inputs().map(|(heard, _)| heard);
    let expected = [1, 2, 3].map(Uuid::from_u128);
    for a in 0..4 {
        for b in (0..4).filter(|b| *b != a) {
            for c in (0..4).filter(|c| ![a, b].contains(c)) {
                let d = 6 - a - b - c;
                let order = [a, b, c, d].map(|index| inputs[index].clone());
                assert_eq!(sent(&order), expected, "{order:?}");
            }
        }
    }
}

#[test]
fn what_is_held_back_twice_waits_once() {
    let heard = [Heard::Notice(confirmed()), Heard::Notice(confirmed()), Heard::Created(CUSTOMER)];
    assert_eq!(sent(&heard), [Uuid::from_u128(1)]);
}

#[test]
fn mails_say_what_happened() {
    let amount = Money::new(1999, Currency::parse("EUR").unwrap()).unwrap();
    let refunded = notice(3, News::Refunded { amount });
    assert!(body(&refunded).contains("19.99") && subject(&refunded).contains(&refunded.order_id.to_string()));
    let reasons = ["payment_declined", "out_of_stock", "customer", "deadline", "a_reason_from_the_future"];
    let mut texts: Vec<_> = reasons.map(|reason| body(&notice(2, News::Cancelled { reason: reason.into() }))).into();
    assert!(texts.iter().all(|text| text.contains("is cancelled") && !text.contains("a_reason_from_the_future")));
    texts.dedup();
    assert_eq!(texts.len(), reasons.len(), "each reason has its words");
}
