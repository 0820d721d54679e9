use std::str::FromStr;

use futures_util::future::try_join_all;
use sqlx::migrate::MigrationType;
use sqlx::{AssertSqlSafe, SqlSafeStr};
use testkit::TestDatabase;

use super::*;

/// A service whose `count` migrations each make a table.
fn service(count: i64) -> Migrator {
    let migration = |version| {
        let sql = AssertSqlSafe(format!("create table t{version} (id bigint primary key)")).into_sql_str();
        Migration::new(version, format!("table {version}").into(), MigrationType::Simple, sql, false)
    };
    Migrator::with_migrations((1..=count).map(migration).collect())
}

async fn empty() -> (TestDatabase, PgConnectOptions) {
    let database = testkit::database("empty", |_| async { Ok::<_, sqlx::Error>(()) }).await.unwrap();
    let options = PgConnectOptions::from_str(database.url()).unwrap();
    (database, options)
}

async fn check_as(options: &PgConnectOptions, service: &Migrator) -> Result<(), SchemaError> {
    let mut connection = PgConnection::connect_with(options).await.unwrap();
    check(&mut connection, "orders", service).await
}

#[tokio::test]
async fn an_empty_database_is_too_old_and_names_the_command() {
    let (_database, options) = empty().await;
    let error = check_as(&options, &service(2)).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, SchemaError::Older { .. }), "{text}");
    for expected in ["0001 mesh", "0001 table 1", "0002 table 2", "run `orders migrate` first"] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

#[tokio::test]
async fn any_number_of_processes_may_migrate_at_once() {
    let (database, options) = empty().await;
    let migrations = service(3);
    try_join_all((0..8).map(|_| migrate(&options, &migrations))).await.unwrap();
    check_as(&options, &migrations).await.unwrap();
    let histories: (i64, i64) = sqlx::query_as(
        "select (select count(*) from mesh._sqlx_migrations), (select count(*) from public._sqlx_migrations)",
    )
    .fetch_one(database.pool())
    .await
    .unwrap();
    assert_eq!(histories, (MESH.iter().count() as i64, 3), "two histories, each applied once");
    let locks: i64 = sqlx::query_scalar("select count(*) from pg_locks where locktype = 'advisory'")
        .fetch_one(database.pool())
        .await
        .unwrap();
    assert_eq!(locks, 0);
}

#[tokio::test]
async fn an_older_build_runs_on_a_newer_schema_and_migrates_nothing() {
    let (database, options) = empty().await;
    migrate(&options, &service(3)).await.unwrap();
    check_as(&options, &service(2)).await.unwrap();
    migrate(&options, &service(2)).await.unwrap();
    let tables: i64 = sqlx::query_scalar("select count(*) from pg_tables where tablename ~ '^t[0-9]$'")
        .fetch_one(database.pool())
        .await
        .unwrap();
    assert_eq!(tables, 3);
}

#[tokio::test]
async fn a_newer_build_does_not_run_on_an_older_schema() {
    let (_database, options) = empty().await;
    migrate(&options, &service(1)).await.unwrap();
    let SchemaError::Older { pending, .. } = check_as(&options, &service(3)).await.unwrap_err() else {
        unreachable!("two migrations are missing")
    };
    assert_eq!(pending, ["0002 table 2", "0003 table 3"]);
}

#[tokio::test]
async fn a_migration_that_was_edited_is_noticed() {
    let (_database, options) = empty().await;
    migrate(&options, &service(1)).await.unwrap();
    let edited = Migration::new(1, "table 1".into(), MigrationType::Simple, "select 1".into_sql_str(), false);
    let error = check_as(&options, &Migrator::with_migrations(vec![edited])).await.unwrap_err();
    assert!(matches!(error, SchemaError::Changed { .. }), "{error}");
}

#[tokio::test]
async fn a_failing_migration_keeps_what_was_applied_before_it() {
    let (_database, options) = empty().await;
    let mut migrations = service(1).migrations.into_owned();
    migrations.push(Migration::new(2, "broken".into(), MigrationType::Simple, "select nonsense".into_sql_str(), false));
    let broken = Migrator::with_migrations(migrations);
    assert!(matches!(migrate(&options, &broken).await.unwrap_err(), SchemaError::Migrate(_)));
    check_as(&options, &service(1)).await.unwrap();
    migrate(&options, &service(2)).await.unwrap();
}
