use uuid::Uuid;

use super::{decline_blocked, insert_blocked, insert_charged, insert_declined, lock, refund};
use crate::domain::{Bill, Charge, Payment};
use crate::testing::{database, euros, impatient, violation};

const ORDER: Uuid = Uuid::from_u128(1);
const PAYMENT: Uuid = Uuid::from_u128(2);
const REFUND: Uuid = Uuid::from_u128(3);

fn charge() -> Charge {
    Charge { payment_id: PAYMENT, bill: Bill::new(Uuid::from_u128(4), euros(1999)).unwrap() }
}

#[tokio::test]
async fn a_charge_is_given_back_once_and_by_its_name() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    assert_eq!(lock(connection, ORDER).await.unwrap(), None);
    insert_charged(connection, ORDER, &charge()).await.unwrap();
    assert_eq!(lock(connection, ORDER).await.unwrap(), Some(Payment::Charged(charge())));

    let other = refund(connection, ORDER, Uuid::from_u128(9), REFUND).await;
    assert!(matches!(other, Err(sqlx::Error::RowNotFound)), "another payment: {other:?}");
    refund(connection, ORDER, PAYMENT, REFUND).await.unwrap();
    assert_eq!(lock(connection, ORDER).await.unwrap(), Some(Payment::Refunded(charge())));
    let again = refund(connection, ORDER, PAYMENT, Uuid::from_u128(9)).await;
    assert!(matches!(again, Err(sqlx::Error::RowNotFound)), "a second refund: {again:?}");
}

#[tokio::test]
async fn a_locked_order_makes_others_wait() {
    let database = database().await;
    insert_blocked(&mut database.pool().acquire().await.unwrap(), ORDER).await.unwrap();
    let mut first = impatient(&database).await;
    assert_eq!(lock(&mut first, ORDER).await.unwrap(), Some(Payment::Blocked));
    assert_eq!(violation(lock(&mut *impatient(&database).await, ORDER).await).0, "55P03");
}

#[tokio::test]
async fn a_tombstone_can_only_become_a_decline() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    insert_blocked(connection, ORDER).await.unwrap();
    assert_eq!(lock(connection, ORDER).await.unwrap(), Some(Payment::Blocked));
    let refunded = refund(connection, ORDER, PAYMENT, REFUND).await;
    assert!(matches!(refunded, Err(sqlx::Error::RowNotFound)), "{refunded:?}");
    decline_blocked(connection, ORDER).await.unwrap();
    assert_eq!(lock(connection, ORDER).await.unwrap(), Some(Payment::Declined));
    let again = decline_blocked(connection, ORDER).await;
    assert!(matches!(again, Err(sqlx::Error::RowNotFound)), "{again:?}");
}

#[tokio::test]
async fn only_one_of_two_first_decisions_about_an_order_is_kept() {
    let database = database().await;
    let taken = || ("23505".to_owned(), Some("payment_pkey".to_owned()));
    let connection = &mut database.pool().acquire().await.unwrap();
    insert_declined(connection, ORDER).await.unwrap();
    assert_eq!(violation(insert_charged(connection, ORDER, &charge()).await), taken());
    assert_eq!(violation(insert_blocked(connection, ORDER).await), taken());
    assert_eq!(violation(insert_declined(connection, ORDER).await), taken());
}

#[tokio::test]
async fn the_table_itself_refuses_what_no_payment_is() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    insert_charged(connection, ORDER, &charge()).await.unwrap();
    insert_blocked(connection, Uuid::from_u128(8)).await.unwrap();
    let cases = [
        ("update payment set payment_id = null where state = 'charged'", "payment_amount_check"),
        ("update payment set state = 'blocked' where state = 'charged'", "payment_payment_id_check"),
        ("update payment set amount = 0 where state = 'charged'", "payment_amount_check"),
        ("update payment set amount = 5 where state = 'blocked'", "payment_amount_check"),
        ("update payment set state = 'refunded' where state = 'charged'", "payment_refund_id_check"),
        ("update payment set state = 'charged' where state = 'blocked'", "payment_payment_id_check"),
        ("update payment set state = 'lost' where state = 'blocked'", "payment_state_check"),
    ];
    for (statement, constraint) in cases {
        let refused = sqlx::query(statement).execute(&mut **connection).await;
        assert_eq!(violation(refused), ("23514".to_owned(), Some(constraint.to_owned())), "{statement}");
    }
}
