use sqlx::error::DatabaseError;
use sqlx::{PgConnection, PgPool};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{append, entries, load, load_for_update, snapshot};
use crate::domain::{Account, Bill, Charge, Entry};
use crate::testing::{database, euros, violation};

const ALICE: Uuid = Uuid::from_u128(0xa11ce);
const BOB: Uuid = Uuid::from_u128(0xb0b);

async fn opened(connection: &mut PgConnection, customer_id: Uuid, balance: i64) -> Account {
    let account = append(connection, customer_id, None, &Entry::Opened { balance: euros(0) }).await.unwrap();
    append(connection, customer_id, Some(account), &account.deposit(balance).unwrap()).await.unwrap()
}

fn charge(n: u128, minor: i64) -> Charge {
    Charge { payment_id: Uuid::from_u128(n), bill: Bill::new(ALICE, euros(minor)).unwrap() }
}

/// Appends entries until the account has `version` of them: deposits of 10, charges of 5, and refunds of those.
async fn grown(connection: &mut PgConnection, mut account: Account, version: i64) -> Account {
    while account.version < version {
        let charge = charge(account.version as u128, 5);
        let entry = match account.version % 3 {
            0 => account.deposit(10).unwrap(),
            1 => account.charge(Uuid::max(), &charge).unwrap(),
            _ => charge.refund(Uuid::max(), Uuid::max()),
        };
        account = append(connection, ALICE, Some(account), &entry).await.unwrap();
    }
    account
}

#[tokio::test]
async fn an_account_is_what_its_entries_say() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    assert_eq!(load(connection, ALICE).await.unwrap(), None);
    let account = opened(connection, ALICE, 500).await;
    opened(connection, BOB, 7).await;
    assert_eq!(load(connection, ALICE).await.unwrap(), Some(account));
    assert_eq!((account.balance, account.version), (euros(500), 2));

    let all = entries(connection, ALICE, 0, 10).await.unwrap();
    assert_eq!(all.iter().map(|recorded| recorded.version).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(all.iter().map(|recorded| recorded.entry.change()).sum::<i64>(), 500);
    assert_eq!(entries(connection, ALICE, 1, 10).await.unwrap(), all[1..]);
    assert_eq!(entries(connection, ALICE, 0, 1).await.unwrap(), all[..1]);
}

#[tokio::test]
async fn deleting_snapshots_changes_no_balance() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    let account = opened(connection, ALICE, 500).await;
    let account = grown(connection, account, 2 * snapshot::EVERY + 7).await;
    let taken: Vec<i64> =
        sqlx::query_scalar("select stream_version from snapshot").fetch_all(&mut **connection).await.unwrap();
    assert_eq!(taken, [2 * snapshot::EVERY], "one per account, the newest");

    assert_eq!(load(connection, ALICE).await.unwrap(), Some(account));
    sqlx::query("delete from snapshot").execute(&mut **connection).await.unwrap();
    assert_eq!(load(connection, ALICE).await.unwrap(), Some(account));
    let further = grown(connection, account, account.version + 1).await;
    assert_eq!(load(connection, ALICE).await.unwrap(), Some(further), "the account goes on without them");
}

#[tokio::test]
async fn a_load_starts_at_the_snapshot_unless_another_fold_made_it() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    let account = opened(connection, ALICE, 500).await;
    let account = grown(connection, account, snapshot::EVERY + 1).await;
    let forge = "update snapshot set state = jsonb_set(state, '{balance,minor}', '1000000')";
    sqlx::query(forge).execute(&mut **connection).await.unwrap();
    assert!(load(connection, ALICE).await.unwrap().unwrap().balance.minor > 900_000, "the snapshot is not used");
    sqlx::query("update snapshot set format = 99, state = '{}'").execute(&mut **connection).await.unwrap();
    assert_eq!(load(connection, ALICE).await.unwrap(), Some(account));
}

#[tokio::test]
async fn of_two_writers_that_read_the_same_state_one_starts_over() {
    let database = database().await;
    let mut first = database.pool().begin().await.unwrap();
    opened(&mut first, ALICE, 100).await;
    first.commit().await.unwrap();

    let mut first = database.pool().begin().await.unwrap();
    let mut second = database.pool().begin().await.unwrap();
    let read_first = load(&mut first, ALICE).await.unwrap().unwrap();
    let read_second = load(&mut second, ALICE).await.unwrap().unwrap();
    let entry = read_first.charge(Uuid::max(), &charge(1, 100)).unwrap();
    append(&mut first, ALICE, Some(read_first), &entry).await.unwrap();
    first.commit().await.unwrap();
    let lost = append(&mut second, ALICE, Some(read_second), &entry).await;
    assert_eq!(violation(lost), ("23505".to_owned(), Some("event_store_pkey".to_owned())));
}

/// Charges 10 in a transaction of its own. Whether the account covered it, or the error of the lost race.
async fn charged(pool: PgPool, n: u128, wait_in_line: bool) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let account = match wait_in_line {
        true => load_for_update(&mut transaction, ALICE).await?,
        false => load(&mut transaction, ALICE).await?,
    };
    let Ok(entry) = account.unwrap().charge(Uuid::from_u128(n), &charge(n, 10)) else { return Ok(false) };
    append(&mut transaction, ALICE, account, &entry).await?;
    transaction.commit().await?;
    Ok(true)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_never_pays_more_than_it_has() {
    for wait_in_line in [true, false] {
        let database = database().await;
        opened(&mut database.pool().acquire().await.unwrap(), ALICE, 70).await;
        let mut charges = JoinSet::new();
        for n in 1..=10 {
            let pool = database.pool().clone();
            charges.spawn(async move {
                let (mut lost, mut outcome) = (0, charged(pool.clone(), n, wait_in_line).await);
                while let Err(error) = &outcome {
                    assert_eq!(error.as_database_error().and_then(DatabaseError::code).as_deref(), Some("23505"));
                    lost += 1;
                    outcome = charged(pool.clone(), n, wait_in_line).await;
                }
                (outcome.unwrap(), lost)
            });
        }
        let outcomes = charges.join_all().await;
        assert_eq!(outcomes.iter().filter(|(paid, _)| *paid).count(), 7, "70 pays for seven");
        let account = load(&mut database.pool().acquire().await.unwrap(), ALICE).await.unwrap().unwrap();
        assert_eq!((account.balance, account.version), (euros(0), 9));
        let races: u32 = outcomes.iter().map(|(_, lost)| lost).sum();
        assert!(!wait_in_line || races == 0, "writers that wait in line lose no race, but {races} were lost");
    }
}

#[tokio::test]
async fn history_cannot_be_edited() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    opened(connection, ALICE, 500).await;
    for statement in
        ["update event_store set payload = '{}'", "delete from event_store", "truncate event_store cascade"]
    {
        let refused = sqlx::query(statement).execute(&mut **connection).await;
        assert_eq!(violation(refused).0, "23001", "{statement}");
    }
}

#[tokio::test]
async fn a_broken_ledger_is_an_error_that_names_the_entry() {
    let database = database().await;
    let connection = &mut database.pool().acquire().await.unwrap();
    opened(connection, ALICE, 1).await;
    let insert = "insert into event_store (stream_id, stream_version, event_type, payload)
                  values ('account-' || $1::uuid, 3, $2, $3)";
    sqlx::query(insert)
        .bind(ALICE)
        .bind("opened")
        .bind(serde_json::json!({ "balance": euros(0) }))
        .execute(&mut **connection)
        .await
        .unwrap();
    let error = load(connection, ALICE).await.unwrap_err();
    assert!(error.to_string().contains(&format!("entry 3 of the account of {ALICE} cannot follow")), "{error}");
}
