use sqlx::{PgConnection, PgPool};
use tokio::task::JoinSet;

use super::{find, insert, list, lock, lock_demanded, release, reserve, update};
use crate::domain::{Demand, Stock, allocate};
use crate::testing::{database, demand, impatient, sku, violation};

async fn counted(connection: &mut PgConnection, name: &str, on_hand: i64) -> Stock {
    let stock = Stock::unknown(sku(name)).counted(on_hand).unwrap();
    insert(connection, &stock).await.unwrap();
    stock
}

#[tokio::test]
async fn stock_is_read_as_it_was_counted() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    assert_eq!(find(connection, &sku("cup")).await.unwrap(), None);
    assert_eq!(lock(connection, &sku("cup")).await.unwrap(), None);
    let first = counted(connection, "cup", 5).await;
    assert_eq!(find(connection, &sku("cup")).await.unwrap().as_ref(), Some(&first));

    let second = first.restocked(2).unwrap();
    update(connection, &second).await.unwrap();
    assert_eq!(lock(connection, &sku("cup")).await.unwrap(), Some(Stock { on_hand: 7, version: 2, ..first }));
    let stale = update(connection, &second).await;
    assert!(matches!(stale, Err(sqlx::Error::RowNotFound)), "{stale:?}");
    assert_eq!(violation(insert(connection, &second).await).1.as_deref(), Some("stock_pkey"));
}

#[tokio::test]
async fn lists_page_in_byte_order_through_everything_once() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    for name in ["b", "a", "B", "a.1", "0"] {
        counted(connection, name, 1).await;
    }
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = list(connection, &after, 2).await.unwrap();
        seen.extend(page.iter().map(|stock| stock.sku.to_string()));
        match page.last() {
            Some(last) => after = last.sku.to_string(),
            None => break,
        }
    }
    assert_eq!(seen, ["0", "B", "a", "a.1", "b"]);
}

#[tokio::test]
async fn what_is_reserved_is_released_line_by_line() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    counted(connection, "cup", 5).await;
    counted(connection, "pot", 5).await;
    let demand = demand(&[("cup", 2), ("pot", 5)]);
    reserve(connection, &demand).await.unwrap();
    let reserved = |stock: &[Stock]| stock.iter().map(|stock| (stock.reserved, stock.version)).collect::<Vec<_>>();
    assert_eq!(reserved(&lock_demanded(connection, &demand).await.unwrap()), [(2, 2), (5, 2)]);
    release(connection, &demand).await.unwrap();
    assert_eq!(reserved(&lock_demanded(connection, &demand).await.unwrap()), [(0, 3), (0, 3)]);
}

#[tokio::test]
async fn the_table_itself_refuses_an_oversell() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    counted(connection, "cup", 5).await;
    let refused = || ("23514".to_owned(), Some("stock_reserved_check".to_owned()));
    assert_eq!(violation(reserve(connection, &demand(&[("cup", 6)])).await), refused());
    assert_eq!(violation(release(connection, &demand(&[("cup", 1)])).await), refused());
    reserve(connection, &demand(&[("cup", 5)])).await.unwrap();
    let fewer = sqlx::query("update stock set on_hand = 4").execute(&mut **connection).await;
    assert_eq!(violation(fewer), refused());
    let missing = reserve(connection, &demand(&[("fan", 1)])).await;
    assert!(matches!(missing, Err(sqlx::Error::RowNotFound)), "{missing:?}");
}

#[tokio::test]
async fn locked_stock_makes_others_wait() {
    let database = database().await;
    counted(&mut database.pool().acquire().await.unwrap(), "cup", 5).await;
    let (cup, one) = (sku("cup"), demand(&[("cup", 1)]));
    let mut first = impatient(&database).await;
    assert!(lock(&mut first, &cup).await.unwrap().is_some());
    assert_eq!(violation(lock_demanded(&mut *impatient(&database).await, &one).await).0, "55P03");
    drop(first);
    let mut first = impatient(&database).await;
    assert_eq!(lock_demanded(&mut first, &one).await.unwrap().len(), 1);
    assert_eq!(violation(lock(&mut *impatient(&database).await, &cup).await).0, "55P03");
}

/// One order in a transaction of its own: all lines or none.
async fn ordered(pool: PgPool, demand: Demand) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let stock = lock_demanded(&mut transaction, &demand).await?;
    let served = allocate(&demand, &stock).is_ok();
    if served {
        reserve(&mut transaction, &demand).await?;
    }
    transaction.commit().await?;
    Ok(served)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_piece_is_promised_once() {
    let database = database().await;
    counted(&mut database.pool().acquire().await.unwrap(), "cup", 7).await;
    let mut orders = JoinSet::new();
    for _ in 0..10 {
        orders.spawn(ordered(database.pool().clone(), demand(&[("cup", 1)])));
    }
    let served = orders.join_all().await.into_iter().filter(|served| *served.as_ref().unwrap()).count();
    assert_eq!(served, 7);
    let stock = find(&mut database.pool().acquire().await.unwrap(), &sku("cup")).await.unwrap().unwrap();
    assert_eq!((stock.reserved, stock.available()), (7, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_with_the_same_skus_never_wait_for_each_other_in_a_ring() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    // Rows lie in another order than the names sort, so that only the statement can give the order of the locks.
    for name in ["d", "b", "c", "a"] {
        counted(connection, name, 1_000).await;
    }
    let mut orders = JoinSet::new();
    let demands =
        [demand(&[("a", 1), ("d", 1)]), demand(&[("b", 1), ("c", 1), ("d", 1)]), demand(&[("a", 1), ("b", 1)])];
    for n in 0..60 {
        orders.spawn(ordered(database.pool().clone(), demands[n % 3].clone()));
    }
    for outcome in orders.join_all().await {
        assert!(outcome.unwrap());
    }
}
