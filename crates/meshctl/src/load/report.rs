//! How the orders of a run ended, against how they were meant to. Pure.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use uuid::Uuid;

use super::mix::Kind;
use super::send::Sent;
use super::watch::{Facts, Seen};
use crate::flows::duration;

/// Orders that are named of those that ended wrong.
const NAMED: usize = 20;

/// What a run found.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Report {
    /// Orders that were placed.
    sent: usize,
    /// Requests that were refused or not answered.
    refused: usize,
    /// Why, the first ones.
    refusals: Vec<String>,
    /// Orders by how they ended.
    ended: BTreeMap<Kind, usize>,
    /// Orders without an end in the stream.
    unfinished: usize,
    /// Orders that ended otherwise than they were meant to, the first ones.
    wrong: Vec<Wrong>,
    /// All of them.
    wrong_count: usize,
    /// Orders placed in a second.
    rate: f64,
    /// From the moment an order was created until its end was stored.
    latency: Option<Latency>,
    /// The same by how they ended.
    latency_by_end: BTreeMap<Kind, Latency>,
}

/// An order that did not end as it was meant.
#[derive(Debug, PartialEq, Serialize)]
struct Wrong {
    order_id: Uuid,
    meant: Kind,
    /// The last fact, and the reason if it has one.
    found: String,
}

/// Milliseconds below which this part of the orders ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Latency {
    p50_ms: i64,
    p95_ms: i64,
    p99_ms: i64,
    max_ms: i64,
}

/// How many of the orders have an end.
pub(super) fn ended(sent: &[Sent], facts: &Facts) -> usize {
    sent.iter().filter(|sent| facts.get(&sent.order_id).is_some_and(|seen| end(seen).is_some())).count()
}

/// The fact that ends a flow, and whether everything that follows from it is there as well.
fn end(facts: &[Seen]) -> Option<&Seen> {
    let has = |name: &str| facts.iter().any(|seen| seen.fact == name);
    let end = facts.iter().find(|seen| matches!(&*seen.fact, "orders.order_confirmed" | "orders.order_cancelled"))?;
    let cancelled = end.fact == "orders.order_cancelled";
    // What was done before a cancellation is undone, or the flow has not ended.
    let owes_refund = cancelled && has("payments.payment_processed") && !has("payments.refund_issued");
    let owes_release = cancelled && has("inventory.inventory_reserved") && !has("inventory.inventory_released");
    (!owes_refund && !owes_release).then_some(end)
}

fn kind(end: &Seen) -> Option<Kind> {
    match (&*end.fact, end.reason.as_deref()) {
        ("orders.order_confirmed", _) => Some(Kind::Confirmed),
        (_, Some("payment_declined")) => Some(Kind::Declined),
        (_, Some("out_of_stock")) => Some(Kind::OutOfStock),
        (_, Some("customer")) => Some(Kind::Cancelled),
        _ => None,
    }
}

impl Report {
    pub(super) fn new(sent: Vec<Sent>, refused: Vec<String>, facts: &Facts, sent_in: Duration) -> Self {
        let mut report = Self {
            sent: sent.len(),
            refused: refused.len(),
            refusals: refused.into_iter().take(NAMED).collect(),
            ended: BTreeMap::new(),
            unfinished: 0,
            wrong: Vec::new(),
            wrong_count: 0,
            rate: sent.len() as f64 / sent_in.as_secs_f64().max(f64::EPSILON),
            latency: None,
            latency_by_end: BTreeMap::new(),
        };
        let mut times: BTreeMap<Kind, Vec<i64>> = BTreeMap::new();
        for order in sent {
            report.take(order, facts.get(&order.order_id).map(Vec::as_slice).unwrap_or_default(), &mut times);
        }
        report.latency = Latency::of(times.values().flatten().copied().collect());
        report.latency_by_end =
            times.into_iter().filter_map(|(kind, times)| Some((kind, Latency::of(times)?))).collect();
        report
    }

    fn take(&mut self, order: Sent, facts: &[Seen], times: &mut BTreeMap<Kind, Vec<i64>>) {
        let Some(end) = end(facts) else {
            self.unfinished += 1;
            return self.is_wrong(order, facts.last());
        };
        let found = kind(end);
        if let Some(kind) = found {
            *self.ended.entry(kind).or_default() += 1;
            let begun = facts.iter().find(|seen| seen.fact == "orders.order_created").unwrap_or(end);
            times.entry(kind).or_default().push(end.stored_at.unix_millis() - begun.time.unix_millis());
        }
        if found != Some(order.meant) {
            self.is_wrong(order, Some(end));
        }
    }

    fn is_wrong(&mut self, order: Sent, last: Option<&Seen>) {
        self.wrong_count += 1;
        if self.wrong.len() < NAMED {
            let found = match last {
                None => "no fact".to_owned(),
                Some(Seen { fact, reason: None, .. }) => fact.clone(),
                Some(Seen { fact, reason: Some(reason), .. }) => format!("{fact} ({reason})"),
            };
            self.wrong.push(Wrong { order_id: order.order_id, meant: order.meant, found });
        }
    }

    /// Whether every order was taken and ended as it was meant.
    pub(super) fn all_right(&self) -> bool {
        self.refused == 0 && self.wrong_count == 0
    }
}

impl Latency {
    /// Of every single time: the smallest one that so many are not above.
    fn of(mut times: Vec<i64>) -> Option<Self> {
        times.sort_unstable();
        let rank = |percent: usize| (times.len() * percent).div_ceil(100).saturating_sub(1);
        let at = |percent: usize| times.get(rank(percent)).copied();
        Some(Self { p50_ms: at(50)?, p95_ms: at(95)?, p99_ms: at(99)?, max_ms: *times.last()? })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} orders sent, {:.1} a second; {} refused", self.sent, self.rate, self.refused)?;
        self.refusals.iter().take(3).try_for_each(|why| writeln!(f, "  refused: {why}"))?;
        for kind in Kind::ALL {
            let count = self.ended.get(&kind).copied().unwrap_or_default();
            write!(f, "  {:<12}  {count:>6}", kind.word())?;
            self.latency_by_end.get(&kind).iter().try_for_each(|latency| write!(f, "  {latency}"))?;
            writeln!(f)?;
        }
        writeln!(f, "  {:<12}  {:>6}", "unfinished", self.unfinished)?;
        self.latency.iter().try_for_each(|latency| writeln!(f, "to the end     {latency}"))?;
        for wrong in &self.wrong {
            writeln!(f, "WRONG: order {} was to be {}, and is {}", wrong.order_id, wrong.meant.word(), wrong.found)?;
        }
        match self.wrong_count {
            0 => write!(f, "every order ended as it was meant"),
            wrong => write!(f, "{wrong} orders did not end as they were meant"),
        }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p95, p99, max] = [self.p50_ms, self.p95_ms, self.p99_ms, self.max_ms].map(duration);
        write!(f, "p50 {p50}, p95 {p95}, p99 {p99}, max {max}")
    }
}
