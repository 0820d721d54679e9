//! A small world in which every promise was kept: one order confirmed, one refunded because there was no second mug.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::checker::{
    Asked, DeadLetter, Evidence, Expected, LedgerEntry, OrderRow, PaymentRow, Reaction, Record, ReservationRow,
    SentRow, StockRow, Stored,
};

pub(super) const CUSTOMER: Uuid = Uuid::from_u128(0xc);
pub(super) const CONFIRMED: Uuid = Uuid::from_u128(0xa1);
pub(super) const CANCELLED: Uuid = Uuid::from_u128(0xa2);
const PAID_IN: i64 = 10_000;
const PRICE: i64 = 1_999;

/// All that the checker is given.
pub(super) struct World {
    pub(super) evidence: Evidence,
    pub(super) record: Record,
    pub(super) expected: Expected,
}

/// Who hears what.
const REACTIONS: [(&str, &str, &str); 6] = [
    ("payments", "charge-customer", "orders.order_created"),
    ("payments", "refund-failed-order", "inventory.inventory_failed"),
    ("inventory", "note-order", "orders.order_created"),
    ("inventory", "reserve-stock", "payments.payment_processed"),
    ("orders", "confirm-order", "inventory.inventory_reserved"),
    ("orders", "cancel-refunded-order", "payments.refund_issued"),
];

impl World {
    pub(super) fn whole() -> World {
        let mut world =
            World { evidence: Evidence::default(), record: Record::default(), expected: Expected::default() };
        world.people();
        world.confirmed();
        world.cancelled();
        let reaction = |(service, subscriber, on): (&str, &str, &str)| Reaction {
            service: service.to_owned(),
            subscriber: subscriber.to_owned(),
            hears: vec![format!("{on}.v1")],
        };
        world.evidence.reactions = REACTIONS.map(reaction).into();
        world
    }

    /// Gives a message another id and place.
    pub(super) fn rename(stored: &mut Stored, sequence: u64) {
        stored.sequence = sequence;
        stored
            .headers
            .iter_mut()
            .filter(|(name, _)| name == "ce-id")
            .for_each(|(_, value)| *value = id(sequence).to_string());
    }

    /// Names a cause that does not exist.
    pub(super) fn orphan(stored: &mut Stored) {
        let causes = stored.headers.iter_mut().filter(|(name, _)| name == "ce-causationid");
        causes.for_each(|(_, value)| *value = id(98).to_string());
    }

    pub(super) fn letter(service: &str, subscriber: &str) -> DeadLetter {
        DeadLetter { service: service.to_owned(), subscriber: subscriber.to_owned(), reason: "bad_body".to_owned() }
    }

    fn people(&mut self) {
        self.record.deposits.insert(CUSTOMER, PAID_IN);
        self.record.stocked.insert("mug".to_owned(), 1);
        for order_id in [CONFIRMED, CANCELLED] {
            let asked = Asked { customer_id: CUSTOMER, total: PRICE, pieces: mug() };
            self.record.orders.insert(order_id, asked);
        }
        self.book("opened", None, 0);
        self.book("deposited", None, PAID_IN);
        self.evidence.stock.insert("mug".to_owned(), StockRow { on_hand: 1, reserved: 1 });
        self.evidence.shown.stock.insert("mug".to_owned(), (1, 1, 0));
        self.evidence.shown.balances.insert(CUSTOMER, PAID_IN - PRICE);
    }

    fn confirmed(&mut self) {
        let amount = json!({ "amount": { "minor": PRICE } });
        let lines = json!({ "lines": [{ "sku": "mug", "quantity": 1 }] });
        let created = self.say("orders.order_created", CONFIRMED, None, &json!({}));
        let paid = self.say("payments.payment_processed", CONFIRMED, Some(created), &amount);
        let reserved = self.say("inventory.inventory_reserved", CONFIRMED, Some(paid), &lines);
        self.say("orders.order_confirmed", CONFIRMED, Some(reserved), &json!({}));
        self.book("charged", Some(CONFIRMED), PRICE);
        self.row(CONFIRMED, "confirmed", None, "charged");
        let reservation = ReservationRow { state: "reserved".to_owned(), pieces: mug() };
        self.evidence.reservations.insert(CONFIRMED, reservation);
    }

    fn cancelled(&mut self) {
        let amount = json!({ "amount": { "minor": PRICE } });
        let created = self.say("orders.order_created", CANCELLED, None, &json!({}));
        let paid = self.say("payments.payment_processed", CANCELLED, Some(created), &amount);
        let failed = self.say("inventory.inventory_failed", CANCELLED, Some(paid), &json!({}));
        let refunded = self.say("payments.refund_issued", CANCELLED, Some(failed), &amount);
        self.say("orders.order_cancelled", CANCELLED, Some(refunded), &json!({ "reason": "out_of_stock" }));
        self.book("charged", Some(CANCELLED), PRICE);
        self.book("refunded", Some(CANCELLED), PRICE);
        self.row(CANCELLED, "cancelled", Some("out_of_stock"), "refunded");
        let reservation = ReservationRow { state: "failed".to_owned(), pieces: mug() };
        self.evidence.reservations.insert(CANCELLED, reservation);
    }

    fn book(&mut self, kind: &str, order_id: Option<Uuid>, minor: i64) {
        let version = i64::try_from(self.evidence.ledger.len()).unwrap() + 1;
        let entry = LedgerEntry {
            customer_id: CUSTOMER,
            version,
            kind: kind.to_owned(),
            order_id,
            payment_id: order_id,
            minor,
        };
        self.evidence.ledger.push(entry);
    }

    fn row(&mut self, order_id: Uuid, status: &str, reason: Option<&str>, payment: &str) {
        let (status, cancel_reason) = (status.to_owned(), reason.map(str::to_owned));
        self.evidence.shown.orders.insert(order_id, (status.clone(), cancel_reason.clone()));
        let order = OrderRow { stage: status.clone(), status, cancel_reason, total: PRICE };
        self.evidence.orders.insert(order_id, order);
        self.evidence.payments.insert(order_id, PaymentRow { state: payment.to_owned(), amount: Some(PRICE) });
    }

    /// Commits, publishes and settles a fact; its place in the stream.
    fn say(&mut self, fact: &str, order_id: Uuid, cause: Option<u64>, body: &Value) -> u64 {
        let sequence = u64::try_from(self.evidence.stream.len()).unwrap() + 1;
        let (service, key, event_type) = (fact.split('.').next().unwrap(), order_id.to_string(), format!("{fact}.v1"));
        for known in ["orders", "payments", "inventory"] {
            self.evidence.mesh.entry(known.to_owned()).or_default();
        }
        let tables = self.evidence.mesh.get_mut(service).unwrap();
        let version = tables.versions.entry(key.clone()).or_default();
        *version += 1;
        let payload = body.to_string().into_bytes();
        let hops =
            cause.map_or(0, |cause| self.evidence.stream[usize::try_from(cause).unwrap() - 1].hops().unwrap() + 1);
        let mut headers = vec![
            ("ce-id".to_owned(), id(sequence).to_string()),
            ("ce-source".to_owned(), format!("urn:mesh:{service}")),
            ("ce-type".to_owned(), event_type.clone()),
            ("ce-correlationid".to_owned(), key.clone()),
            ("ce-partitionkey".to_owned(), key.clone()),
            ("ce-sequence".to_owned(), format!("{version:020}")),
            ("mesh-hops".to_owned(), hops.to_string()),
        ];
        headers.extend(cause.map(|cause| ("ce-causationid".to_owned(), id(cause).to_string())));
        let sent = SentRow {
            event_id: id(sequence),
            event_type: event_type.clone(),
            key,
            key_version: *version,
            payload: payload.clone(),
            stream_sequence: i64::try_from(sequence).unwrap(),
        };
        tables.sent.push(sent);
        for (hearer, subscriber, _) in REACTIONS.iter().filter(|(_, _, on)| *on == fact) {
            let settled = &mut self.evidence.mesh.get_mut(*hearer).unwrap().settled;
            settled.push((id(sequence), (*subscriber).to_owned()));
        }
        self.evidence.stream.push(Stored { sequence, subject: format!("evt.{event_type}.0"), headers, body: payload });
        sequence
    }
}

fn id(sequence: u64) -> Uuid {
    Uuid::from_u128(0xf000 + u128::from(sequence))
}

fn mug() -> BTreeMap<String, i64> {
    BTreeMap::from([("mug".to_owned(), 1)])
}
