use std::time::Duration;

use events::CancelReason;
use sqlx::error::DatabaseError;
use sqlx::{PgConnection, Postgres, Transaction};
use testkit::TestDatabase;
use uuid::Uuid;

use super::{Filter, OverdueFlow, count_overdue, find, insert, list, lock, lock_overdue, settle};
use crate::domain::{Order, Status};
use crate::testing::{database, placement};

const ALICE: Uuid = Uuid::from_u128(0xa11ce);
const BOB: Uuid = Uuid::from_u128(0xb0b);
const LATER: Duration = Duration::from_secs(60);

/// The order with the number `n`, whose OrderCreated has the number `n + 1000`.
async fn placed(connection: &mut PgConnection, n: u128, customer_id: Uuid, within: Duration) -> Order {
    insert(connection, Uuid::from_u128(n), placement(customer_id), Uuid::from_u128(n + 1000), within).await.unwrap()
}

async fn stage(connection: &mut PgConnection, order_id: Uuid) -> String {
    sqlx::query_scalar("select stage from flow_state where order_id = $1")
        .bind(order_id)
        .fetch_one(connection)
        .await
        .unwrap()
}

#[tokio::test]
async fn an_order_is_read_as_it_was_placed() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    let order = placed(connection, 1, ALICE, LATER).await;
    assert_eq!((order.total.minor, order.lines.len(), &order.status, order.version), (2749, 2, &Status::Pending, 1));
    assert_eq!(find(connection, order.order_id).await.unwrap().as_ref(), Some(&order));
    assert_eq!(stage(connection, order.order_id).await, "open");
    assert_eq!(find(connection, Uuid::from_u128(2)).await.unwrap(), None);
    assert_eq!(lock(connection, Uuid::from_u128(2)).await.unwrap(), None);
}

#[tokio::test]
async fn an_order_is_settled_once_and_its_flow_with_it() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    let ends = [Status::Confirmed, Status::Cancelled(CancelReason::from("a_reason_from_the_future"))];
    for (n, status) in (1..).zip(ends) {
        let order = placed(connection, n, ALICE, LATER).await;
        let settled = settle(connection, order.clone(), status.clone()).await.unwrap();
        assert_eq!((&settled.status, settled.version), (&status, 2));
        assert!(settled.updated_at >= settled.created_at);
        assert_eq!(find(connection, order.order_id).await.unwrap().as_ref(), Some(&settled));
        assert_eq!(stage(connection, order.order_id).await, status.as_str());
        for stale in [order, settled] {
            let again = settle(connection, stale, Status::Confirmed).await;
            assert!(matches!(again, Err(sqlx::Error::RowNotFound)), "{again:?}");
        }
    }
}

/// A transaction that does not wait for locks.
async fn impatient(database: &TestDatabase) -> Transaction<'static, Postgres> {
    let mut transaction = database.pool().begin().await.unwrap();
    sqlx::query("set local lock_timeout = '50ms'").execute(&mut *transaction).await.unwrap();
    transaction
}

#[tokio::test]
async fn a_locked_order_makes_others_wait() {
    let database = database().await;
    let mut first = impatient(&database).await;
    let order = placed(&mut first, 1, ALICE, LATER).await;
    first.commit().await.unwrap();
    let mut first = impatient(&database).await;
    assert_eq!(lock(&mut first, order.order_id).await.unwrap(), Some(order.clone()));
    let waiting = lock(&mut *impatient(&database).await, order.order_id).await.unwrap_err();
    assert_eq!(waiting.as_database_error().and_then(DatabaseError::code).as_deref(), Some("55P03"), "{waiting}");
}

#[tokio::test]
async fn only_overdue_open_flows_are_taken_the_oldest_first() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    for (n, within) in [(1, LATER), (2, Duration::ZERO), (3, Duration::ZERO), (4, Duration::ZERO)] {
        placed(connection, n, ALICE, within).await;
    }
    let finished = lock(connection, Uuid::from_u128(2)).await.unwrap().unwrap();
    settle(connection, finished, Status::Confirmed).await.unwrap();
    assert_eq!(count_overdue(connection).await.unwrap(), 2);

    let overdue = |n| OverdueFlow { order_id: Uuid::from_u128(n), created_event_id: Uuid::from_u128(n + 1000) };
    let mut first = impatient(&database).await;
    assert_eq!(lock_overdue(&mut first).await.unwrap(), Some(overdue(3)));
    let mut second = impatient(&database).await;
    assert_eq!(lock_overdue(&mut second).await.unwrap(), Some(overdue(4)), "what is locked is skipped");
    let mut third = impatient(&database).await;
    assert_eq!(lock_overdue(&mut third).await.unwrap(), None);
}

#[tokio::test]
async fn lists_page_through_everything_once_newest_first() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    for n in 1..=9 {
        let order = placed(connection, n, if n % 3 == 0 { BOB } else { ALICE }, LATER).await;
        if n % 2 == 0 {
            settle(connection, order, Status::Confirmed).await.unwrap();
        }
    }
    let filter = |customer_id, status| Filter { customer_id, status };
    let cases: [(Filter, &[u128]); 6] = [
        (filter(None, None), &[9, 8, 7, 6, 5, 4, 3, 2, 1]),
        (filter(Some(BOB), None), &[9, 6, 3]),
        (filter(None, Some("confirmed")), &[8, 6, 4, 2]),
        (filter(Some(ALICE), Some("pending")), &[7, 5, 1]),
        (filter(None, Some("cancelled")), &[]),
        (filter(Some(Uuid::from_u128(7)), None), &[]),
    ];
    for (filter, expected) in cases {
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let page = list(connection, filter, before, 2).await.unwrap();
            seen.extend(page.iter().map(|order| order.order_id.as_u128()));
            match page.last() {
                Some(last) => before = Some(last.order_id),
                None => break,
            }
        }
        assert_eq!(seen, expected, "{filter:?}");
    }
}

#[tokio::test]
async fn a_row_that_is_no_order_is_an_error_that_names_it() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    let order = placed(connection, 1, ALICE, LATER).await;
    sqlx::query("update orders set total = 1").execute(&mut **connection).await.unwrap();
    let error = find(connection, order.order_id).await.unwrap_err();
    assert!(error.to_string().contains(&format!("order {} has an impossible total", order.order_id)), "{error}");
}

#[tokio::test]
async fn the_table_itself_refuses_what_no_order_is() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    placed(connection, 1, ALICE, LATER).await;
    let cases = [
        ("update orders set status = 'cancelled'", "orders_cancel_reason_check"),
        ("update orders set cancel_reason = 'customer'", "orders_cancel_reason_check"),
        ("update orders set status = 'shipped'", "orders_status_check"),
        ("update orders set total = 0", "orders_total_check"),
        ("update orders set lines = '[]'", "orders_lines_check"),
        ("update flow_state set stage = 'lost'", "flow_state_stage_check"),
        ("delete from orders", "flow_state_order_fkey"),
    ];
    for (statement, constraint) in cases {
        let error = sqlx::query(statement).execute(&mut **connection).await.unwrap_err();
        assert_eq!(error.as_database_error().and_then(|error| error.constraint()), Some(constraint), "{statement}");
    }
}
