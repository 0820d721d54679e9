use envelope::{Event, RawMessage};
use events::{
    CancelReason, Currency, DeclineReason, FailureReason, InventoryFailed, Money, OrderCancelled, OrderCreated,
    PaymentDeclined, PaymentProcessed, RefundIssued, RefundReason,
};
use mesh::testing::{Declared, TestBed, conformance, message};
use mesh::{DeadReason, Subscriber, Verdict};
use testkit::TestDatabase;
use uuid::Uuid;

use super::{ChargeCustomer, RefundCancelledOrder, RefundFailedOrder};
use crate::domain::{Account, Entry};
use crate::ledger;
use crate::testing::{bed, euros};

const DECLARED: Declared =
    Declared { catalogue: "../../events/catalogue/payments.json", durable: "../../nats/consumers/payments.json" };

const ORDER: Uuid = Uuid::from_u128(0x0d);
const CUSTOMER: Uuid = Uuid::from_u128(0xc0);
const TOTAL: i64 = 1_999;

/// A fact with the id `n`.
fn fact<E: Event>(n: u128, event: &E) -> RawMessage {
    message(event, Uuid::from_u128(n)).unwrap()
}

fn created_over(total: Money) -> OrderCreated {
    OrderCreated { order_id: ORDER, customer_id: CUSTOMER, total, lines: vec![] }
}

fn created() -> RawMessage {
    fact(1, &created_over(euros(TOTAL)))
}

fn failure() -> InventoryFailed {
    InventoryFailed { order_id: ORDER, reason: FailureReason::OutOfStock, shortages: vec![] }
}

fn failed() -> RawMessage {
    fact(2, &failure())
}

fn cancellation() -> OrderCancelled {
    OrderCancelled { order_id: ORDER, reason: CancelReason::Customer }
}

fn cancelled() -> RawMessage {
    fact(3, &cancellation())
}

async fn hear(bed: &TestBed, message: RawMessage) -> Verdict {
    let verdicts = bed.deliver_message(message, false).await;
    let [(_, verdict)] = &verdicts[..] else { panic!("not one subscriber: {verdicts:?}") };
    verdict.clone()
}

async fn open(database: &TestDatabase, balance: i64) {
    let connection = &mut database.pool().acquire().await.unwrap();
    let account = ledger::append(connection, CUSTOMER, None, &Entry::Opened { balance: euros(0) }).await.unwrap();
    ledger::append(connection, CUSTOMER, Some(account), &account.deposit(balance).unwrap()).await.unwrap();
}

async fn account(database: &TestDatabase) -> Option<Account> {
    ledger::load(&mut database.pool().acquire().await.unwrap(), CUSTOMER).await.unwrap()
}

async fn balance(database: &TestDatabase) -> i64 {
    account(database).await.unwrap().balance.minor
}

/// How many of each: charged, declined, refunded.
async fn said(bed: &TestBed) -> [usize; 3] {
    [
        bed.published::<PaymentProcessed>().await.unwrap().len(),
        bed.published::<PaymentDeclined>().await.unwrap().len(),
        bed.published::<RefundIssued>().await.unwrap().len(),
    ]
}

/// The service with an account, and what it did about the order.
async fn after(facts: &[RawMessage]) -> (TestDatabase, TestBed) {
    let (database, bed) = bed().await;
    open(&database, 5_000).await;
    for fact in facts {
        hear(&bed, fact.clone()).await;
    }
    (database, bed)
}

#[tokio::test]
async fn every_subscriber_conforms() {
    let (before, charged) = (async || after(&[]).await, async || after(&[created()]).await);
    conformance(ChargeCustomer::NAME, &DECLARED, before, &[created_over(euros(TOTAL))]).await.unwrap();
    conformance(RefundFailedOrder::NAME, &DECLARED, charged, &[failure()]).await.unwrap();
    conformance(RefundCancelledOrder::NAME, &DECLARED, charged, &[cancellation()]).await.unwrap();
}

#[tokio::test]
async fn an_order_is_charged_once_however_often_it_is_told() {
    let (database, bed) = bed().await;
    open(&database, 5_000).await;
    assert_eq!(hear(&bed, created()).await, Verdict::Handled);
    assert_eq!(hear(&bed, created()).await, Verdict::Duplicate, "the same fact");
    let other = fact(99, &created_over(euros(TOTAL)));
    assert_eq!(hear(&bed, other).await, Verdict::NoEffect("already_charged"), "another fact about the same order");
    assert_eq!(balance(&database).await, 5_000 - TOTAL);

    let facts = bed.published::<PaymentProcessed>().await.unwrap();
    let [(metadata, paid)] = &facts[..] else { panic!("not one fact: {facts:?}") };
    assert_eq!((paid.order_id, paid.customer_id, paid.amount), (ORDER, CUSTOMER, euros(TOTAL)));
    assert_eq!((metadata.correlation_id, metadata.causation_id), (ORDER, Some(Uuid::from_u128(1))));
    assert_eq!(said(&bed).await, [1, 0, 0]);
}

#[tokio::test]
async fn what_cannot_be_charged_is_declined_with_its_reason() {
    let yen = Money::new(10, Currency::parse("JPY").unwrap()).unwrap();
    let cases = [
        (None, euros(TOTAL), DeclineReason::UnknownAccount),
        (Some(5_000), yen, DeclineReason::CurrencyMismatch),
        (Some(TOTAL - 1), euros(TOTAL), DeclineReason::InsufficientFunds),
    ];
    for (opened, total, reason) in cases {
        let (database, bed) = bed().await;
        if let Some(balance) = opened {
            open(&database, balance).await;
        }
        assert_eq!(hear(&bed, fact(1, &created_over(total))).await, Verdict::Handled);
        let declined = bed.published::<PaymentDeclined>().await.unwrap().remove(0).1;
        assert_eq!(declined, PaymentDeclined { order_id: ORDER, customer_id: CUSTOMER, amount: total, reason });
        assert_eq!(account(&database).await.map(|account| account.balance.minor), opened);
        // Money that comes later does not revive the order.
        assert_eq!(hear(&bed, fact(9, &created_over(total))).await, Verdict::NoEffect("already_declined"));
        for undoing in [failed(), cancelled()] {
            assert_eq!(hear(&bed, undoing).await, Verdict::NoEffect("nothing_charged"));
        }
        assert_eq!(said(&bed).await, [0, 1, 0]);
    }
}

#[tokio::test]
async fn a_charge_is_given_back_once_whoever_asks_first() {
    let cases =
        [(failed(), cancelled(), RefundReason::InventoryFailed), (cancelled(), failed(), RefundReason::OrderCancelled)];
    for (first, second, reason) in cases {
        let (database, bed) = bed().await;
        open(&database, 5_000).await;
        hear(&bed, created()).await;
        assert_eq!(hear(&bed, first).await, Verdict::Compensated("refund"));
        assert_eq!(hear(&bed, second).await, Verdict::NoEffect("already_refunded"));
        assert_eq!(balance(&database).await, 5_000);

        let paid = bed.published::<PaymentProcessed>().await.unwrap().remove(0).1;
        let refund = bed.published::<RefundIssued>().await.unwrap().remove(0).1;
        assert_eq!((refund.payment_id, refund.amount, refund.reason), (paid.payment_id, paid.amount, reason));
        assert_eq!(said(&bed).await, [1, 0, 1]);
    }
}

#[tokio::test]
async fn an_order_that_was_undone_first_is_never_charged_and_still_answered() {
    for undoing in [cancelled(), failed()] {
        let (database, bed) = bed().await;
        open(&database, 5_000).await;
        assert_eq!(hear(&bed, undoing).await, Verdict::Handled);
        assert_eq!(hear(&bed, created()).await, Verdict::Handled);
        assert_eq!(balance(&database).await, 5_000);
        let declined = bed.published::<PaymentDeclined>().await.unwrap().remove(0).1;
        assert_eq!((declined.customer_id, declined.reason), (CUSTOMER, DeclineReason::OrderCancelled));
        assert_eq!(said(&bed).await, [0, 1, 0]);
    }
}

#[tokio::test]
async fn every_order_of_arrival_with_every_fact_told_three_times_leaves_the_money_where_it_was() {
    let facts = [created(), failed(), cancelled()];
    for arrival in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (database, bed) = bed().await;
        open(&database, 5_000).await;
        for index in arrival {
            for _ in 0..3 {
                hear(&bed, facts[index].clone()).await;
            }
        }
        assert_eq!(balance(&database).await, 5_000, "{arrival:?}");
        let [charged, declined, refunded] = said(&bed).await;
        assert_eq!((charged + declined, refunded), (1, charged), "{arrival:?}: one answer, and a refund per charge");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_and_its_undoing_may_race() {
    for round in 0..5 {
        let (database, bed) = bed().await;
        open(&database, 5_000).await;
        let verdicts = tokio::join!(hear(&bed, created()), hear(&bed, failed()), hear(&bed, cancelled()));
        for verdict in [&verdicts.0, &verdicts.1, &verdicts.2] {
            assert!(!matches!(verdict, Verdict::Retry(_) | Verdict::Dead(_)), "round {round}: {verdicts:?}");
        }
        assert_eq!(balance(&database).await, 5_000, "round {round}: {verdicts:?}");
        let [charged, declined, refunded] = said(&bed).await;
        assert_eq!((charged + declined, refunded), (1, charged), "round {round}: {verdicts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_undoings_of_one_charge_may_race() {
    for round in 0..5 {
        let (database, bed) = bed().await;
        open(&database, 5_000).await;
        hear(&bed, created()).await;
        let verdicts = tokio::join!(hear(&bed, failed()), hear(&bed, cancelled()));
        let (refund, kept) = (Verdict::Compensated("refund"), Verdict::NoEffect("already_refunded"));
        let expected = [(refund.clone(), kept.clone()), (kept, refund)];
        assert!(expected.contains(&verdicts), "round {round}: {verdicts:?}");
        assert_eq!((balance(&database).await, said(&bed).await), (5_000, [1, 0, 1]), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_account_pays_for_what_it_can_and_declines_the_rest() {
    let (database, bed) = bed().await;
    open(&database, 7 * TOTAL).await;
    let orders = (1..=10).map(|n| {
        let order = OrderCreated { order_id: Uuid::from_u128(n), ..created_over(euros(TOTAL)) };
        let (bed, message) = (&bed, fact(1_000 + n, &order));
        async move { hear(bed, message).await }
    });
    for verdict in futures_util::future::join_all(orders).await {
        assert_eq!(verdict, Verdict::Handled);
    }
    assert_eq!(said(&bed).await, [7, 3, 0]);
    assert_eq!(balance(&database).await, 0);
}

#[tokio::test]
async fn an_order_over_nothing_is_given_up_at_once() {
    let (database, bed) = bed().await;
    open(&database, 5_000).await;
    for minor in [0, -1_999_i64] {
        let verdict = hear(&bed, fact(minor.unsigned_abs().into(), &created_over(euros(minor)))).await;
        assert!(matches!(verdict, Verdict::Dead(DeadReason::Rejected) | Verdict::Parked(_)), "{verdict:?}");
    }
    assert_eq!((balance(&database).await, said(&bed).await), (5_000, [0, 0, 0]));
}
