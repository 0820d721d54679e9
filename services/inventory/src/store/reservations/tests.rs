use sqlx::PgConnection;
use uuid::Uuid;

use super::{advance, insert, lock};
use crate::domain::{Held, Reservation};
use crate::testing::{database, demand, impatient, violation};

const ORDER: Uuid = Uuid::from_u128(1);

fn noted() -> Reservation {
    Reservation::Noted(demand(&[("cup", 2), ("pot", 1)]))
}

fn reserved() -> Reservation {
    Reservation::Reserved(Held { reservation_id: Uuid::from_u128(2), demand: demand(&[("cup", 2), ("pot", 1)]) })
}

async fn stored(connection: &mut PgConnection) -> Option<Reservation> {
    lock(connection, ORDER).await.unwrap()
}

#[tokio::test]
async fn every_way_through_the_states_is_stored_and_read_again() {
    let paths: [&[Reservation]; 7] = [
        &[noted(), reserved(), Reservation::Released],
        &[Reservation::Paid, reserved(), Reservation::Released],
        &[noted(), Reservation::Failed],
        &[Reservation::Paid, Reservation::Failed],
        &[noted(), Reservation::Cancelled, Reservation::Failed],
        &[Reservation::Cancelled, Reservation::Failed],
        &[Reservation::Paid, Reservation::CancelledPaid, Reservation::Failed],
    ];
    for path in paths {
        let database = database().await;
        let connection = &mut database.pool().acquire().await.unwrap();
        assert_eq!(stored(connection).await, None);
        insert(connection, ORDER, &path[0]).await.unwrap();
        assert_eq!(stored(connection).await.as_ref(), Some(&path[0]));
        for step in path.windows(2) {
            advance(connection, ORDER, &step[0], &step[1]).await.unwrap();
            assert_eq!(stored(connection).await.as_ref(), Some(&step[1]));
            let again = advance(connection, ORDER, &step[0], &step[1]).await;
            assert!(matches!(again, Err(sqlx::Error::RowNotFound)), "{step:?} twice: {again:?}");
        }
    }
}

#[tokio::test]
async fn a_locked_order_makes_others_wait() {
    let database = database().await;
    insert(&mut database.pool().acquire().await.unwrap(), ORDER, &noted()).await.unwrap();
    let mut first = impatient(&database).await;
    assert_eq!(lock(&mut first, ORDER).await.unwrap(), Some(noted()));
    assert_eq!(violation(lock(&mut *impatient(&database).await, ORDER).await).0, "55P03");
}

#[tokio::test]
async fn only_one_of_two_first_facts_about_an_order_is_kept() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    insert(connection, ORDER, &noted()).await.unwrap();
    let second = insert(connection, ORDER, &Reservation::Paid).await;
    assert_eq!(violation(second), ("23505".to_owned(), Some("reservation_pkey".to_owned())));
}

#[tokio::test]
async fn the_table_itself_refuses_what_no_reservation_is() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    insert(connection, ORDER, &reserved()).await.unwrap();
    let cases = [
        ("update reservation set state = 'failed'", "reservation_reservation_id_check"),
        ("update reservation set reservation_id = null", "reservation_reservation_id_check"),
        ("update reservation set lines = null", "reservation_lines_check"),
        ("update reservation set state = 'lost', reservation_id = null", "reservation_state_check"),
    ];
    for (statement, constraint) in cases {
        let refused = sqlx::query(statement).execute(&mut **connection).await;
        assert_eq!(violation(refused), ("23514".to_owned(), Some(constraint.to_owned())), "{statement}");
    }
}
