use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry;

use super::*;
use crate::telemetry::log;

/// A collector that hands on what is posted to it: content type and body.
async fn collector() -> (String, mpsc::UnboundedReceiver<(String, Bytes)>) {
    let (posted, posts) = mpsc::unbounded_channel();
    let receive = move |headers: HeaderMap, body: Bytes| async move {
        let content_type = headers["content-type"].to_str().unwrap_or_default().to_owned();
        posted.send((content_type, body)).is_ok().to_string()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/v1/traces", post(receive));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (endpoint, posts)
}

fn resource() -> Resource {
    Resource::builder_empty().with_service_name("orders").build()
}

/// On a runtime of one thread, which is blocked while it flushes: the exporter must not need it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn spans_arrive_at_the_collector_when_the_process_ends() {
    let (endpoint, mut posts) = collector().await;
    let flushed = tokio::task::spawn_blocking(move || {
        let provider = provider(Some(&endpoint), resource()).unwrap();
        let subscriber = registry().with(log::spans(&provider));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info_span!("deliver", subscriber = "charge-customer").in_scope(|| {});
        });
        provider.shutdown()
    });
    flushed.await.unwrap().unwrap();
    let (content_type, body) = posts.recv().await.unwrap();
    assert_eq!(content_type, "application/x-protobuf");
    let text = String::from_utf8_lossy(&body);
    for expected in ["orders", "deliver", "charge-customer"] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert!(posts.try_recv().is_err(), "one batch");
}

#[tokio::test]
async fn a_collector_that_is_away_costs_a_service_nothing_but_spans() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let provider = provider(Some(&endpoint), resource()).unwrap();
    tracing::subscriber::with_default(registry().with(log::spans(&provider)), || {
        tracing::info_span!("deliver").in_scope(|| {});
    });
    // It says so and returns; the last export may fail within it or before.
    let _ = provider.shutdown();
}

#[test]
fn the_path_of_the_specification_is_added_once() {
    for given in ["http://c:4318", "http://c:4318/", "http://c:4318/v1/traces"] {
        assert_eq!(traces_url(given), "http://c:4318/v1/traces");
    }
}
