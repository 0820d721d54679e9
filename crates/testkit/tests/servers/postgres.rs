//! PostgreSQL: durable by default, recovers from a kill, keeps roles apart; databases are cloned fast and apart.

use std::borrow::Cow;
use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::{Connection, PgConnection, PgPool, Row};
use testkit::{Error, Postgres, PostgresOptions, TestDatabase, install, wait};

async fn setting(connection: &mut PgConnection, name: &str) -> String {
    sqlx::query_scalar("select current_setting($1)").bind(name).fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn a_server_is_durable_unless_asked_otherwise_and_recovers_from_a_kill() {
    let postgres = Postgres::start(PostgresOptions::new()).await.unwrap();
    assert!(postgres.version() >= install::POSTGRES_OLDEST);
    let mut connection = PgConnection::connect(&postgres.url("postgres")).await.unwrap();
    for name in ["fsync", "synchronous_commit", "full_page_writes"] {
        assert_eq!(setting(&mut connection, name).await, "on", "{name}");
    }
    // A killed server would leave the other kinds in the machine.
    assert_eq!(setting(&mut connection, "dynamic_shared_memory_type").await, "mmap");
    sqlx::raw_sql("create table kept (n int); insert into kept values (7)").execute(&mut connection).await.unwrap();

    let (pid, url) = (postgres.pid(), postgres.url("postgres"));
    postgres.kill9().await;
    assert!(sqlx::query("select 1").execute(&mut connection).await.is_err(), "the session outlived the server");
    postgres.restart().await.unwrap();

    assert_ne!(postgres.pid(), pid);
    assert_eq!(postgres.url("postgres"), url);
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let kept: i32 = sqlx::query_scalar("select n from kept").fetch_one(&mut connection).await.unwrap();
    assert_eq!(kept, 7);

    postgres.stop_immediate().await.unwrap();
    postgres.restart().await.unwrap();
    postgres.restart().await.unwrap(); // also while it runs
    PgConnection::connect(&url).await.unwrap();
}

#[tokio::test]
async fn a_killed_server_commits_nothing_more() {
    let postgres = Postgres::start(PostgresOptions::new().without_fsync()).await.unwrap();
    postgres.execute("create table steps (n int)").await.unwrap();
    let mut busy = PgConnection::connect(&postgres.url("postgres")).await.unwrap();
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut busy).await.unwrap();
    // Never waits, so it would not notice for a long time that the postmaster is gone.
    let steps = "do $$ begin for n in 1..1000000000 loop insert into steps values (n); commit; end loop; end $$";
    let busy = tokio::spawn(async move { sqlx::raw_sql(steps).execute(&mut busy).await.is_err() });
    wait::until("some steps", Duration::from_secs(10), || async {
        let mut other = PgConnection::connect(&postgres.url("postgres")).await.map_err(|error| error.to_string())?;
        let some: bool = sqlx::query_scalar("select exists (select from steps)").fetch_one(&mut other).await.unwrap();
        if some { Ok(()) } else { Err("none".to_owned()) }
    })
    .await
    .unwrap();
    postgres.kill9().await;
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "the session outlived the server: {state}");
    assert!(busy.await.unwrap());

    // What it left outside its directory goes with the value.
    let left = std::fs::read_to_string(postgres.data_directory().join("postmaster.pid")).unwrap();
    let segment = left.lines().nth(6).unwrap().split_whitespace().nth(1).unwrap().to_owned();
    let segments = || std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let listed = || segments().lines().any(|line| line.split_whitespace().nth(1) == Some(&segment));
    assert!(listed());
    drop(postgres);
    assert!(!listed());
}

#[tokio::test]
async fn a_role_enters_its_own_database_with_its_password_and_no_other() {
    let postgres = Postgres::start(PostgresOptions::new().without_fsync()).await.unwrap();
    for name in ["orders", "payments"] {
        postgres.create_role_database(name, name).await.unwrap();
        postgres.create_role_database(name, name).await.unwrap(); // kept when it exists
    }
    let mut own = PgConnection::connect(&postgres.url_for("orders", "orders")).await.unwrap();
    sqlx::raw_sql("create schema mesh; create table orders (n int)").execute(&mut own).await.unwrap();

    let refusal = async |url: &str| {
        let error = PgConnection::connect(url).await.unwrap_err();
        error.as_database_error().and_then(DatabaseError::code).map(Cow::into_owned)
    };
    assert_eq!(refusal(&postgres.url_for("orders", "payments")).await.as_deref(), Some("42501"));
    let without_password = format!("postgres://orders@{}/orders", postgres.address());
    assert_eq!(refusal(&without_password).await.as_deref(), Some("28P01"));
}

#[tokio::test]
async fn a_directory_of_the_caller_is_used_again() {
    let home = testkit::scratch::dir("state").unwrap();
    // The account that runs PostgreSQL for root has to pass.
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let options = || PostgresOptions::new().directory(home.path().join("postgres")).setting("work_mem", "5MB");

    let first = Postgres::start(options()).await.unwrap();
    first.create_role_database("orders", "orders").await.unwrap();
    first.execute("create table kept (n int)").await.unwrap();
    drop(first);

    let second = Postgres::start(options()).await.unwrap();
    second.create_role_database("orders", "orders").await.unwrap();
    let mut connection = PgConnection::connect(&second.url("postgres")).await.unwrap();
    sqlx::query("select n from kept").fetch_all(&mut connection).await.unwrap();
    assert_eq!(setting(&mut connection, "work_mem").await, "5MB");
    PgConnection::connect(&second.url_for("orders", "orders")).await.unwrap();
}

#[tokio::test]
async fn a_wrong_setting_fails_at_once_with_what_the_server_said() {
    let started = Postgres::start(PostgresOptions::new().setting("no_such_parameter", "1")).await;
    let Err(Error::Exited { log, .. }) = started else { panic!("{started:?}") };
    assert!(log.contains("no_such_parameter"), "{log}");
}

async fn prepared() -> TestDatabase {
    testkit::database("one table", |url| async move {
        let pool = PgPool::connect(&url).await?;
        sqlx::raw_sql("create table facts (n int); insert into facts values (1)").execute(&pool).await?;
        // The pool is not closed: a template is copied all the same.
        std::mem::forget(pool);
        Ok::<_, sqlx::Error>(())
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn databases_are_copies_that_do_not_see_each_other_and_go_when_dropped() {
    let (first, second) = tokio::join!(prepared(), prepared());
    sqlx::raw_sql("insert into facts values (2)").execute(first.pool()).await.unwrap();
    let count = |database: &TestDatabase| {
        let pool = database.pool().clone();
        async move { sqlx::query("select count(*) from facts").fetch_one(&pool).await.unwrap().get::<i64, _>(0) }
    };
    assert_eq!((count(&first).await, count(&second).await), (2, 1));

    let name = first.name().to_owned();
    drop(first);
    wait::until("the database to be dropped", Duration::from_secs(10), || async {
        let left: i64 = sqlx::query_scalar("select count(*) from pg_database where datname = $1")
            .bind(&name)
            .fetch_one(second.pool())
            .await
            .unwrap();
        if left == 0 { Ok(()) } else { Err("still there") }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_template_that_cannot_be_prepared_is_an_error_and_is_tried_again() {
    let broken = testkit::database("mended", |_| async { Err("no such migration") }).await;
    let shown = format!("{:?}", broken.unwrap_err());
    assert_eq!(shown, "cannot prepare the template database \"mended\": no such migration");
    testkit::database("mended", |_| async { Ok::<_, String>(()) }).await.unwrap();
}
