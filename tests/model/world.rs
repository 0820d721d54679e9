//! One order, the three services that know of it, and the facts under way between them.

use std::collections::BTreeSet;

use inventory::domain::{self as stocking, Demand, Held, Reservation};
use orders::domain::{self as ordering, Status};
use payments::domain::{self as paying, Bill, Charge, Payment};
use serde_json::json;
use uuid::Uuid;

const FUNDS: i64 = 5_000;
const TOTAL: i64 = 1_999;
const PIECES: u32 = 3;

/// What the customer and the shop have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resources {
    /// The account covers the order.
    pub(crate) funds: bool,
    /// The stock covers the order.
    pub(crate) stock: bool,
}

/// A fact of the flow. Each is said at most once: saying one again fails the exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fact {
    OrderCreated,
    OrderConfirmed,
    OrderCancelled,
    PaymentProcessed,
    PaymentDeclined,
    RefundIssued,
    InventoryReserved,
    InventoryFailed,
    InventoryReleased,
}

/// Who hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Service {
    Orders,
    Payments,
    Inventory,
}

/// Something that can happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A service hears a fact for the first time.
    Deliver(Fact, Service),
    /// A service hears a fact that it knows, under an id that its inbox does not know.
    TellAgain(Fact, Service),
    CustomerCancels,
    DeadlinePasses,
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    resources: Resources,
    order: Status,
    payment: Option<Payment>,
    reservation: Option<Reservation>,
    balance: i64,
    reserved: u32,
    said: BTreeSet<Fact>,
    heard: BTreeSet<(Fact, Service)>,
}

impl Fact {
    /// Who subscribes, as in the catalogue.
    fn audience(self) -> &'static [Service] {
        match self {
            Self::OrderCreated | Self::OrderCancelled => &[Service::Payments, Service::Inventory],
            Self::PaymentProcessed => &[Service::Inventory],
            Self::InventoryFailed => &[Service::Payments],
            Self::PaymentDeclined | Self::RefundIssued | Self::InventoryReserved => &[Service::Orders],
            Self::OrderConfirmed | Self::InventoryReleased => &[],
        }
    }
}

impl World {
    pub(crate) fn with_a_placed_order(resources: Resources) -> Self {
        Self {
            resources,
            order: Status::Pending,
            payment: None,
            reservation: None,
            balance: if resources.funds { FUNDS } else { TOTAL - 1 },
            reserved: 0,
            said: BTreeSet::from([Fact::OrderCreated]),
            heard: BTreeSet::new(),
        }
    }

    pub(crate) fn said(&self) -> impl Iterator<Item = Fact> {
        self.said.iter().copied()
    }

    /// Whether every fact has reached everyone that hears it.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.steps().iter().any(|step| matches!(step, Step::Deliver(..)))
    }

    pub(crate) fn steps(&self) -> Vec<Step> {
        let deliveries = self.said.iter().flat_map(|&fact| fact.audience().iter().map(move |&service| (fact, service)));
        let told = deliveries.map(|(fact, service)| match self.heard.contains(&(fact, service)) {
            true => Step::TellAgain(fact, service),
            false => Step::Deliver(fact, service),
        });
        told.chain([Step::CustomerCancels, Step::DeadlinePasses]).collect()
    }

    pub(crate) fn after(&self, step: Step) -> Self {
        let mut next = self.clone();
        match step {
            Step::Deliver(fact, service) => {
                next.heard.insert((fact, service));
                next.hear(fact, service);
            }
            Step::TellAgain(fact, service) => {
                next.hear(fact, service);
                assert_eq!(
                    format!("{next:?}"),
                    format!("{self:?}"),
                    "{fact:?} told again to {service:?} changed something"
                );
            }
            Step::CustomerCancels => next.act_on_order(ordering::Input::CustomerCancel),
            Step::DeadlinePasses => next.act_on_order(ordering::Input::Deadline),
        }
        next
    }

    fn hear(&mut self, fact: Fact, service: Service) {
        match (service, fact) {
            (Service::Orders, Fact::InventoryReserved) => self.act_on_order(ordering::Input::InventoryReserved),
            (Service::Orders, Fact::PaymentDeclined) => self.act_on_order(ordering::Input::PaymentDeclined),
            (Service::Orders, Fact::RefundIssued) => self.act_on_order(ordering::Input::RefundIssued),
            (Service::Payments, Fact::OrderCreated) => self.act_on_payment(paying::Input::OrderCreated(bill())),
            (Service::Payments, Fact::InventoryFailed) => self.act_on_payment(paying::Input::InventoryFailed),
            (Service::Payments, Fact::OrderCancelled) => self.act_on_payment(paying::Input::OrderCancelled),
            (Service::Inventory, Fact::OrderCreated) => self.act_on_stock(&stocking::Input::OrderCreated(demand())),
            (Service::Inventory, Fact::PaymentProcessed) => self.act_on_stock(&stocking::Input::PaymentProcessed),
            (Service::Inventory, Fact::OrderCancelled) => self.act_on_stock(&stocking::Input::OrderCancelled),
            deaf => panic!("nobody subscribes: {deaf:?}"),
        }
    }

    fn act_on_order(&mut self, input: ordering::Input) {
        match ordering::on(Some(&self.order), input) {
            ordering::Decision::Confirm => {
                self.order = Status::Confirmed;
                self.say(Fact::OrderConfirmed);
            }
            ordering::Decision::Cancel(reason) => {
                self.order = Status::Cancelled(reason);
                self.say(Fact::OrderCancelled);
            }
            ordering::Decision::Keep(kept) => assert_ne!(kept, ordering::Kept::ContradictsConfirmed, "{self:?}"),
            ordering::Decision::Unknown => panic!("the order is there from the start"),
        }
    }

    fn act_on_payment(&mut self, input: paying::Input) {
        match paying::on(self.payment.as_ref(), input) {
            paying::Decision::Charge(bill) if self.balance >= bill.amount.minor => {
                self.balance -= bill.amount.minor;
                self.payment = Some(Payment::Charged(Charge { payment_id: Uuid::max(), bill }));
                self.say(Fact::PaymentProcessed);
            }
            paying::Decision::Charge(_) | paying::Decision::Decline(..) => {
                self.payment = Some(Payment::Declined);
                self.say(Fact::PaymentDeclined);
            }
            paying::Decision::Refund(charge, _) => {
                self.balance += charge.bill.amount.minor;
                self.payment = Some(Payment::Refunded(charge));
                self.say(Fact::RefundIssued);
            }
            paying::Decision::Block => self.payment = Some(Payment::Blocked),
            paying::Decision::Keep(_) => {}
        }
    }

    fn act_on_stock(&mut self, input: &stocking::Input) {
        match stocking::on(self.reservation.as_ref(), input) {
            stocking::Decision::Note(demand) => self.reservation = Some(Reservation::Noted(demand)),
            stocking::Decision::AwaitOrder => self.reservation = Some(Reservation::Paid),
            stocking::Decision::Reserve(demand) if self.resources.stock => {
                self.reserved += pieces(&demand);
                self.reservation = Some(Reservation::Reserved(Held { reservation_id: Uuid::max(), demand }));
                self.say(Fact::InventoryReserved);
            }
            stocking::Decision::Reserve(_) | stocking::Decision::Refuse => {
                self.reservation = Some(Reservation::Failed);
                self.say(Fact::InventoryFailed);
            }
            stocking::Decision::Release(held) => {
                self.reserved -= pieces(&held.demand);
                self.reservation = Some(Reservation::Released);
                self.say(Fact::InventoryReleased);
            }
            stocking::Decision::Block => self.reservation = Some(Reservation::Cancelled),
            stocking::Decision::BlockPaid => self.reservation = Some(Reservation::CancelledPaid),
            stocking::Decision::Keep(_) => {}
        }
    }

    fn say(&mut self, fact: Fact) {
        assert!(self.said.insert(fact), "{fact:?} is said a second time: {self:?}");
    }

    /// What must hold at every moment.
    pub(crate) fn check(&self) {
        let has = |fact| self.said.contains(&fact);
        let spent = self.resources.funds && has(Fact::PaymentProcessed) && !has(Fact::RefundIssued);
        let opening = Self::with_a_placed_order(self.resources).balance;
        assert_eq!(self.balance, opening - i64::from(spent) * TOTAL, "money: {self:?}");
        let held = has(Fact::InventoryReserved) && !has(Fact::InventoryReleased);
        assert_eq!(self.reserved, u32::from(held) * PIECES, "stock: {self:?}");
        for (effect, undoing) in [
            (Fact::PaymentProcessed, Fact::RefundIssued),
            (Fact::PaymentProcessed, Fact::InventoryReserved),
            (Fact::InventoryReserved, Fact::InventoryReleased),
            (Fact::InventoryReserved, Fact::OrderConfirmed),
        ] {
            assert!(has(effect) || !has(undoing), "{undoing:?} without {effect:?}: {self:?}");
        }
        assert!(!(has(Fact::OrderConfirmed) && has(Fact::OrderCancelled)), "two ends: {self:?}");
    }

    /// What must hold when nothing is left to deliver.
    pub(crate) fn check_end(&self) {
        let charged = matches!(self.payment, Some(Payment::Charged(_)));
        let reserved = matches!(self.reservation, Some(Reservation::Reserved(_)));
        match self.order {
            Status::Pending => panic!("stuck: {self:?}"),
            Status::Confirmed => assert!(charged && reserved, "confirmed for nothing: {self:?}"),
            Status::Cancelled(_) => assert!(!charged && !reserved, "cancelled, not undone: {self:?}"),
        }
        // Whoever asks is answered: the order by payments, the payment by inventory.
        let count = |facts: [Fact; 2]| facts.into_iter().filter(|fact| self.said.contains(fact)).count();
        assert_eq!(count([Fact::PaymentProcessed, Fact::PaymentDeclined]), 1, "{self:?}");
        let paid = usize::from(self.said.contains(&Fact::PaymentProcessed));
        assert_eq!(count([Fact::InventoryReserved, Fact::InventoryFailed]), paid, "{self:?}");
    }
}

fn bill() -> Bill {
    let total = serde_json::from_value(json!({ "minor": TOTAL, "currency": "EUR", "scale": 2 })).expect("an amount");
    Bill::new(Uuid::max(), total).expect("an amount above zero")
}

fn demand() -> Demand {
    serde_json::from_value(json!([{ "sku": "cup", "quantity": PIECES }])).expect("a demand")
}

fn pieces(demand: &Demand) -> u32 {
    demand.lines().iter().map(|line| line.quantity).sum()
}
