//! What the tests of this crate share.

use axum::Router;
use mesh::testing::TestBed;
use reqwest::{Client, Method, RequestBuilder};
use testkit::TestDatabase;
use uuid::Uuid;

use crate::domain::{Draft, DraftLine, Placement};
use crate::{Settings, service};

/// A database with the tables of this service.
pub(crate) async fn database() -> TestDatabase {
    let prepare = |url: String| async move { mesh::testing::migrate(&service(Settings::default()), &url).await };
    testkit::database("orders", prepare).await.unwrap()
}

/// The service over a database of its own, without a broker.
pub(crate) async fn bed() -> (TestDatabase, TestBed) {
    let database = database().await;
    let bed = TestBed::new(service(Settings::default()), database.pool().clone());
    (database, bed)
}

/// One pot for 19.99 and three cups for 2.50 each.
pub(crate) fn placement(customer_id: Uuid) -> Placement {
    let line = |sku: &str, quantity, unit_price| DraftLine { sku: sku.to_owned(), quantity, unit_price };
    let lines = vec![line("pot", 1, 1999), line("cup", 3, 250)];
    Placement::check(&Draft { customer_id, currency: "EUR".to_owned(), lines }).unwrap()
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
