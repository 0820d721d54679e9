use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::routing::get;
use reqwest::StatusCode;
use serde_json::json;
use sqlx::postgres::PgPoolOptions;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::*;
use crate::clock::System;
use crate::lifecycle::Check;
use crate::telemetry::metrics;
use crate::{Mesh, ServiceContext};

/// A process without a database, serving.
struct Served {
    lifecycle: Lifecycle,
    address: SocketAddr,
    server: JoinHandle<io::Result<()>>,
}

impl Served {
    async fn start(routes: Router<Mesh>, openapi: Option<Value>) -> Self {
        let lifecycle = Lifecycle::new();
        let pool = PgPoolOptions::new().connect_lazy("postgres://nobody@127.0.0.1:1/nothing").unwrap();
        let context = ServiceContext::new("shop", "1.2.3", Arc::new(System));
        let mesh = Mesh::new(pool, context, lifecycle.clone());
        let router = router(lifecycle.readiness(), routes.with_state(mesh), openapi, metrics::install().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = lifecycle.spawn("http", serve(listener, router, lifecycle.clone()));
        Self { lifecycle, address, server }
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        let response = reqwest::get(format!("http://{}{path}", self.address)).await.unwrap();
        (response.status(), response.json().await.unwrap())
    }
}

#[tokio::test]
async fn liveness_depends_on_nothing_and_readiness_on_every_check() {
    let served = Served::start(Router::new(), None).await;
    assert_eq!(served.get("/livez").await, (StatusCode::OK, json!({ "live": true })));
    let (status, report) = served.get("/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(report["checks"][1], json!({ "name": "schema", "ok": false, "detail": "not checked yet" }));
    for check in [Check::Schema, Check::Database, Check::Broker, Check::Consumer] {
        served.lifecycle.readiness().holds(check);
    }
    let (status, report) = served.get("/readyz").await;
    assert_eq!((status, &report["ready"]), (StatusCode::OK, &json!(true)));
    served.lifecycle.readiness().drain();
    let (status, report) = served.get("/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(report["checks"][0]["detail"], "the process is stopping");
    assert_eq!(served.get("/livez").await.0, StatusCode::OK);
}

#[tokio::test]
async fn the_openapi_document_is_served_if_there_is_one() {
    let document = json!({ "openapi": "3.1.0" });
    let with = Served::start(Router::new(), Some(document.clone())).await;
    assert_eq!(with.get("/openapi.json").await, (StatusCode::OK, document));
    let without = Served::start(Router::new(), None).await;
    assert_eq!(without.get("/openapi.json").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_drain_answers_what_is_in_flight_and_takes_no_more() {
    let gate = Arc::new((Semaphore::new(0), Semaphore::new(0)));
    let handler = {
        let gate = Arc::clone(&gate);
        move || async move {
            gate.0.add_permits(1);
            let _opened = gate.1.acquire().await;
            "done"
        }
    };
    let served = Served::start(Router::new().route("/slow", get(handler)), None).await;
    let request = tokio::spawn(reqwest::get(format!("http://{}/slow", served.address)));
    gate.0.acquire().await.unwrap().forget();
    let drain = tokio::spawn({
        let lifecycle = served.lifecycle.clone();
        async move { lifecycle.drain(Duration::from_secs(20)).await }
    });
    served.lifecycle.soft().cancelled().await;
    testkit::wait::until("no connection is accepted", Duration::from_secs(10), || async {
        match tokio::net::TcpStream::connect(served.address).await {
            Err(_) => Ok(()),
            Ok(_) => Err("accepted"),
        }
    })
    .await
    .unwrap();
    assert!(!drain.is_finished());
    gate.1.add_permits(1);
    assert_eq!(request.await.unwrap().unwrap().text().await.unwrap(), "done");
    assert_eq!(drain.await.unwrap(), Ok(()));
    served.server.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_kill_does_not_wait_for_requests() {
    let served = Served::start(Router::new().route("/stuck", get(std::future::pending::<&'static str>)), None).await;
    let request = tokio::spawn(reqwest::get(format!("http://{}/stuck", served.address)));
    served.lifecycle.kill();
    served.server.await.unwrap().unwrap();
    drop(request);
}
