//! What the tests of this crate share.

use axum::Router;
use events::{Currency, Money};
use mesh::testing::TestBed;
use reqwest::{Client, Method, RequestBuilder};
use sqlx::{Postgres, Transaction};
use testkit::TestDatabase;

use crate::service;

/// A database with the tables of this service.
pub(crate) async fn database() -> TestDatabase {
    let prepare = |url: String| async move { mesh::testing::migrate(&service(), &url).await };
    testkit::database("payments", prepare).await.unwrap()
}

/// The service over a database of its own, without a broker.
pub(crate) async fn bed() -> (TestDatabase, TestBed) {
    let database = database().await;
    let bed = TestBed::new(service(), database.pool().clone());
    (database, bed)
}

pub(crate) fn euros(minor: i64) -> Money {
    Money::new(minor, Currency::parse("EUR").unwrap()).unwrap()
}

/// A transaction that does not wait for locks.
pub(crate) async fn impatient(database: &TestDatabase) -> Transaction<'static, Postgres> {
    let mut transaction = database.pool().begin().await.unwrap();
    sqlx::query("set local lock_timeout = '50ms'").execute(&mut *transaction).await.unwrap();
    transaction
}

/// The SQLSTATE and the violated constraint.
pub(crate) fn violation<T: std::fmt::Debug>(result: sqlx::Result<T>) -> (String, Option<String>) {
    let error = result.unwrap_err();
    let error = error.as_database_error().unwrap();
    (error.code().unwrap().into_owned(), error.constraint().map(str::to_owned))
}

/// Calls the routes of a service over a real socket.
pub(crate) struct Caller {
    client: Client,
    root: String,
}

impl Caller {
    pub(crate) async fn new(router: Router) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let root = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { client: Client::new(), root }
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.client.request(Method::from_bytes(method.as_bytes()).unwrap(), format!("{}{path}", self.root))
    }
}
