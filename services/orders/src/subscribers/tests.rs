use std::time::Duration;

use envelope::Event;
use events::{
    CancelReason, Currency, InventoryReserved, Money, OrderCancelled, OrderConfirmed, PaymentDeclined, RefundIssued,
    RefundReason, Sku, StockLine,
};
use mesh::testing::{Declared, TestBed, conformance};
use mesh::{RetryCause, Subscriber, Verdict};
use testkit::TestDatabase;
use uuid::Uuid;

use super::{CancelDeclinedOrder, CancelRefundedOrder, ConfirmOrder};
use crate::domain::{Kept, Order, Status};
use crate::store;
use crate::testing::{bed, placement};

const DECLARED: Declared =
    Declared { catalogue: "../../events/catalogue/orders.json", durable: "../../nats/consumers/orders.json" };

const ORDER: Uuid = Uuid::from_u128(0x0d);
const CUSTOMER: Uuid = Uuid::from_u128(0xc0);

fn amount() -> Money {
    Money::new(2749, Currency::parse("EUR").unwrap()).unwrap()
}

fn reserved() -> InventoryReserved {
    let lines = vec![StockLine { sku: Sku::parse("cup").unwrap(), quantity: 3 }];
    InventoryReserved { order_id: ORDER, reservation_id: Uuid::from_u128(1), lines }
}

fn declined() -> PaymentDeclined {
    PaymentDeclined { order_id: ORDER, customer_id: CUSTOMER, amount: amount(), reason: "insufficient_funds".into() }
}

fn refunded() -> RefundIssued {
    RefundIssued {
        order_id: ORDER,
        payment_id: Uuid::from_u128(2),
        refund_id: Uuid::from_u128(3),
        amount: amount(),
        reason: RefundReason::InventoryFailed,
    }
}

async fn place(database: &TestDatabase) {
    let mut connection = database.pool().acquire().await.unwrap();
    let created_event_id = Uuid::from_u128(9);
    store::insert(&mut connection, ORDER, placement(CUSTOMER), created_event_id, Duration::from_secs(60))
        .await
        .unwrap();
}

async fn order(database: &TestDatabase) -> Order {
    store::find(&mut database.pool().acquire().await.unwrap(), ORDER).await.unwrap().unwrap()
}

/// The verdict of the only subscriber that hears the fact.
async fn hear<E: Event>(bed: &TestBed, event: &E) -> Verdict {
    let verdicts = bed.deliver(event).await.unwrap();
    let [(_, verdict)] = &verdicts[..] else { panic!("not one subscriber: {verdicts:?}") };
    verdict.clone()
}

/// `OrderConfirmed` and `OrderCancelled` facts in the outbox.
async fn said(bed: &TestBed) -> (usize, Vec<CancelReason>) {
    let confirmed = bed.published::<OrderConfirmed>().await.unwrap();
    let cancelled = bed.published::<OrderCancelled>().await.unwrap();
    (confirmed.len(), cancelled.into_iter().map(|(_, fact)| fact.reason).collect())
}

/// The service with the order.
async fn placed() -> (TestDatabase, TestBed) {
    let (database, bed) = bed().await;
    place(&database).await;
    (database, bed)
}

#[tokio::test]
async fn every_subscriber_conforms() {
    conformance(ConfirmOrder::NAME, &DECLARED, placed, &[reserved()]).await.unwrap();
    conformance(CancelDeclinedOrder::NAME, &DECLARED, placed, &[declined()]).await.unwrap();
    conformance(CancelRefundedOrder::NAME, &DECLARED, placed, &[refunded()]).await.unwrap();
}

#[tokio::test]
async fn a_reservation_confirms_once_however_often_it_is_told() {
    let (database, bed) = bed().await;
    place(&database).await;
    assert_eq!(hear(&bed, &reserved()).await, Verdict::Handled);
    assert_eq!(order(&database).await.status, Status::Confirmed);
    for _ in 0..2 {
        assert_eq!(hear(&bed, &reserved()).await, Verdict::NoEffect("already_confirmed"));
    }
    assert_eq!(hear(&bed, &declined()).await, Verdict::NoEffect("contradicts_confirmed"));
    assert_eq!(hear(&bed, &refunded()).await, Verdict::NoEffect("contradicts_confirmed"));
    assert_eq!(said(&bed).await, (1, vec![]));
    assert_eq!(order(&database).await.version, 2);
}

#[tokio::test]
async fn a_decline_and_a_refund_cancel_with_their_reason() {
    for (cancels, reason) in [(true, CancelReason::PaymentDeclined), (false, CancelReason::OutOfStock)] {
        let (database, bed) = bed().await;
        place(&database).await;
        let verdict = if cancels { hear(&bed, &declined()).await } else { hear(&bed, &refunded()).await };
        assert_eq!(verdict, Verdict::Compensated("cancel"));
        assert_eq!(order(&database).await.status, Status::Cancelled(reason.clone()));
        for late in [hear(&bed, &declined()).await, hear(&bed, &refunded()).await, hear(&bed, &reserved()).await] {
            assert_eq!(late, Verdict::NoEffect("already_cancelled"));
        }
        assert_eq!(said(&bed).await, (0, vec![reason]));
    }
}

#[tokio::test]
async fn what_is_said_belongs_to_the_flow_of_what_was_heard() {
    let (database, bed) = bed().await;
    place(&database).await;
    let cause = Uuid::from_u128(0xca);
    bed.deliver_message(mesh::testing::message(&reserved(), cause).unwrap(), false).await;
    let (metadata, fact) = bed.published::<OrderConfirmed>().await.unwrap().remove(0);
    assert_eq!(fact.order_id, ORDER);
    assert_eq!((metadata.correlation_id, metadata.causation_id, metadata.hops), (ORDER, Some(cause), 1));
    assert!(metadata.emitter.starts_with("orders/confirm-order@"), "{}", metadata.emitter);
}

#[tokio::test]
async fn a_fact_about_an_order_that_is_not_here_is_tried_again_until_it_is() {
    let (database, bed) = bed().await;
    let message = mesh::testing::message(&reserved(), Uuid::from_u128(0xca)).unwrap();
    let verdicts = bed.deliver_message(message.clone(), false).await;
    assert!(
        matches!(&verdicts[..], [(_, Verdict::Retry(retry))] if retry.cause == RetryCause::Failure),
        "neither dropped nor parked at once: {verdicts:?}"
    );
    place(&database).await;
    let verdicts = bed.deliver_message(message, true).await;
    assert_eq!(verdicts, [("confirm-order", Verdict::Handled)]);
}

#[tokio::test]
async fn of_two_racing_ends_one_wins_and_the_other_finds_it() {
    let (database, bed) = bed().await;
    for n in 0..5 {
        sqlx::query("truncate orders, flow_state, mesh.outbox").execute(database.pool()).await.unwrap();
        place(&database).await;
        let (confirming, cancelling) = (reserved(), refunded());
        let (confirmed, cancelled) = tokio::join!(hear(&bed, &confirming), hear(&bed, &cancelling));
        let status = order(&database).await.status;
        match status {
            Status::Confirmed => assert_eq!(cancelled, Verdict::NoEffect(Kept::ContradictsConfirmed.as_str())),
            Status::Cancelled(_) => assert_eq!(confirmed, Verdict::NoEffect(Kept::AlreadyCancelled.as_str())),
            Status::Pending => panic!("round {n}: nothing won: {confirmed:?}, {cancelled:?}"),
        }
        let (confirmations, cancellations) = said(&bed).await;
        assert_eq!(confirmations + cancellations.len(), 1, "round {n}: one end is said");
    }
}
