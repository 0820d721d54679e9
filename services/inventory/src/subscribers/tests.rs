use envelope::{Event, RawMessage};
use events::{
    CancelReason, Currency, FailureReason, InventoryFailed, InventoryReleased, InventoryReserved, Money,
    OrderCancelled, OrderCreated, OrderLine, PaymentProcessed, Shortage, StockLine,
};
use mesh::testing::{Declared, TestBed, conformance, message};
use mesh::{DeadReason, Subscriber, Verdict};
use testkit::TestDatabase;
use uuid::Uuid;

use super::{NoteOrder, ReleaseStock, ReserveStock};
use crate::domain::Stock;
use crate::store::stock;
use crate::testing::{bed, sku};

const DECLARED: Declared =
    Declared { catalogue: "../../events/catalogue/inventory.json", durable: "../../nats/consumers/inventory.json" };

const ORDER: Uuid = Uuid::from_u128(0x0d);

/// A fact with the id `n`.
fn fact<E: Event>(n: u128, event: &E) -> RawMessage {
    message(event, Uuid::from_u128(n)).unwrap()
}

fn euros(minor: i64) -> Money {
    Money::new(minor, Currency::parse("EUR").unwrap()).unwrap()
}

fn created_with(order_id: Uuid, lines: &[(&str, u32)]) -> OrderCreated {
    let line = |(name, quantity): &(&str, u32)| OrderLine { sku: sku(name), quantity: *quantity, unit_price: euros(1) };
    OrderCreated { order_id, customer_id: Uuid::max(), total: euros(9), lines: lines.iter().map(line).collect() }
}

fn paid_for(order_id: Uuid) -> PaymentProcessed {
    PaymentProcessed { order_id, payment_id: Uuid::max(), customer_id: Uuid::max(), amount: euros(9) }
}

fn creation() -> OrderCreated {
    created_with(ORDER, &[("pot", 1), ("cup", 3)])
}

fn created() -> RawMessage {
    fact(1, &creation())
}

fn paid() -> RawMessage {
    fact(2, &paid_for(ORDER))
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

/// The service with five cups and five pots.
async fn stocked() -> (TestDatabase, TestBed) {
    let (database, bed) = bed().await;
    for name in ["cup", "pot"] {
        let counted = Stock::unknown(sku(name)).counted(5).unwrap();
        stock::insert(&mut database.pool().acquire().await.unwrap(), &counted).await.unwrap();
    }
    (database, bed)
}

/// Reserved cups and pots.
async fn reserved(database: &TestDatabase) -> [i64; 2] {
    let connection = &mut database.pool().acquire().await.unwrap();
    let stock = stock::list(connection, "", 10).await.unwrap();
    assert!(stock.iter().all(|stock| stock.on_hand == 5), "an order never changes what is on hand: {stock:?}");
    [stock[0].reserved, stock[1].reserved]
}

/// How many of each: reserved, failed, released.
async fn said(bed: &TestBed) -> [usize; 3] {
    [
        bed.published::<InventoryReserved>().await.unwrap().len(),
        bed.published::<InventoryFailed>().await.unwrap().len(),
        bed.published::<InventoryReleased>().await.unwrap().len(),
    ]
}

/// The service with stock, and what it did about the order.
async fn after(facts: &[RawMessage]) -> (TestDatabase, TestBed) {
    let (database, bed) = stocked().await;
    for fact in facts {
        hear(&bed, fact.clone()).await;
    }
    (database, bed)
}

#[tokio::test]
async fn every_subscriber_conforms() {
    let (told, paid_first) = (async || after(&[created()]).await, async || after(&[paid()]).await);
    let reserved = async || after(&[created(), paid()]).await;
    conformance(NoteOrder::NAME, &DECLARED, paid_first, &[creation()]).await.unwrap();
    conformance(ReserveStock::NAME, &DECLARED, told, &[paid_for(ORDER)]).await.unwrap();
    conformance(ReleaseStock::NAME, &DECLARED, reserved, &[cancellation()]).await.unwrap();
}

#[tokio::test]
async fn a_paid_order_is_reserved_once_in_either_order_of_arrival() {
    for [first, second] in [[created(), paid()], [paid(), created()]] {
        let (database, bed) = stocked().await;
        assert_eq!(hear(&bed, first.clone()).await, Verdict::Handled);
        assert_eq!((reserved(&database).await, said(&bed).await), ([0, 0], [0, 0, 0]), "one of the two is not enough");
        assert_eq!(hear(&bed, second).await, Verdict::Handled);
        assert_eq!(hear(&bed, first).await, Verdict::Duplicate);
        for again in [fact(98, &created_with(ORDER, &[("cup", 1)])), fact(99, &paid_for(ORDER))] {
            assert_eq!(hear(&bed, again).await, Verdict::NoEffect("already_reserved"));
        }
        assert_eq!((reserved(&database).await, said(&bed).await), ([3, 1], [1, 0, 0]));
        let lines = bed.published::<InventoryReserved>().await.unwrap().remove(0).1.lines;
        let line = |name, quantity| StockLine { sku: sku(name), quantity };
        assert_eq!(lines, [line("cup", 3), line("pot", 1)]);
    }
}

#[tokio::test]
async fn every_line_is_reserved_or_none_and_what_is_missing_is_named() {
    let cases = [
        ([("cup", 1), ("pot", 6)], FailureReason::OutOfStock, ("pot", 6, 5)),
        ([("cup", 1), ("fan", 2)], FailureReason::UnknownSku, ("fan", 2, 0)),
    ];
    for (lines, reason, (name, requested, available)) in cases {
        let (database, bed) = stocked().await;
        hear(&bed, fact(1, &created_with(ORDER, &lines))).await;
        assert_eq!(hear(&bed, paid()).await, Verdict::Handled);
        let failed = bed.published::<InventoryFailed>().await.unwrap().remove(0).1;
        assert_eq!((failed.order_id, failed.reason), (ORDER, reason));
        assert_eq!(failed.shortages, [Shortage { sku: sku(name), requested, available }]);
        // The order hears of it and is cancelled; there is nothing to free.
        assert_eq!(hear(&bed, cancelled()).await, Verdict::NoEffect("nothing_reserved"));
        assert_eq!((reserved(&database).await, said(&bed).await), ([0, 0], [0, 1, 0]));
    }
}

#[tokio::test]
async fn a_cancelled_order_frees_exactly_what_it_held_once() {
    let (database, bed) = stocked().await;
    hear(&bed, created()).await;
    hear(&bed, paid()).await;
    assert_eq!(hear(&bed, cancelled()).await, Verdict::Compensated("release"));
    let again = fact(97, &OrderCancelled { order_id: ORDER, reason: CancelReason::Deadline });
    assert_eq!(hear(&bed, again).await, Verdict::NoEffect("already_released"));
    assert_eq!((reserved(&database).await, said(&bed).await), ([0, 0], [1, 0, 1]));
    let held = bed.published::<InventoryReserved>().await.unwrap().remove(0).1;
    let freed = bed.published::<InventoryReleased>().await.unwrap().remove(0).1;
    assert_eq!((freed.reservation_id, freed.lines), (held.reservation_id, held.lines));
}

#[tokio::test]
async fn every_order_of_arrival_with_every_fact_told_three_times_holds_nothing_and_answers_the_payment_once() {
    let facts = [created(), paid(), cancelled()];
    for arrival in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (database, bed) = stocked().await;
        for index in arrival {
            for _ in 0..3 {
                hear(&bed, facts[index].clone()).await;
            }
        }
        assert_eq!(reserved(&database).await, [0, 0], "{arrival:?}");
        let [reserved, failed, released] = said(&bed).await;
        assert_eq!(
            (reserved + failed, released),
            (1, reserved),
            "{arrival:?}: one answer, and a release per reservation"
        );
        for (_, failed) in bed.published::<InventoryFailed>().await.unwrap() {
            assert_eq!((failed.reason, failed.shortages), (FailureReason::OrderCancelled, vec![]), "{arrival:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_its_payment_and_its_cancellation_may_race() {
    for round in 0..5 {
        let (database, bed) = stocked().await;
        let verdicts = tokio::join!(hear(&bed, created()), hear(&bed, paid()), hear(&bed, cancelled()));
        for verdict in [&verdicts.0, &verdicts.1, &verdicts.2] {
            assert!(!matches!(verdict, Verdict::Retry(_) | Verdict::Dead(_)), "round {round}: {verdicts:?}");
        }
        assert_eq!(reserved(&database).await, [0, 0], "round {round}: {verdicts:?}");
        let [reserved, failed, released] = said(&bed).await;
        assert_eq!((reserved + failed, released), (1, reserved), "round {round}: {verdicts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_piece_goes_to_one_order() {
    let (database, bed) = stocked().await;
    let mut payments = Vec::new();
    for n in 1..=8 {
        let order_id = Uuid::from_u128(n);
        hear(&bed, fact(100 + n, &created_with(order_id, &[("cup", 1), ("pot", 1)]))).await;
        payments.push(hear(&bed, fact(200 + n, &paid_for(order_id))));
    }
    for verdict in futures_util::future::join_all(payments).await {
        assert_eq!(verdict, Verdict::Handled);
    }
    assert_eq!((reserved(&database).await, said(&bed).await), ([5, 5], [5, 3, 0]));
}

#[tokio::test]
async fn an_order_that_no_stock_can_serve_is_given_up_at_once() {
    let (database, bed) = stocked().await;
    for lines in [&[][..], &[("cup", 0)], &[("cup", u32::MAX), ("cup", 1)]] {
        let order_id = Uuid::from_u128(lines.len() as u128 + 10);
        let verdict = hear(&bed, fact(lines.len() as u128 + 1, &created_with(order_id, lines))).await;
        assert_eq!(verdict, Verdict::Dead(DeadReason::Rejected), "{lines:?}");
    }
    assert_eq!((reserved(&database).await, said(&bed).await), ([0, 0], [0, 0, 0]));
}
