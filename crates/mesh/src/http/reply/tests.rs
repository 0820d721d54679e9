use std::collections::HashMap;

use axum::body::to_bytes;
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_stored_reply_is_sent_as_it_was() {
    let rendered = Reply::created("/orders/1", &json!({ "order_id": 1 })).render().unwrap();
    let response = rendered.clone().into_response();
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["location"], "/orders/1");
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(to_bytes(response.into_body(), 64).await.unwrap(), r#"{"order_id":1}"#);
    assert_eq!(rendered.status, 201);
}

#[test]
fn nothing_has_no_body_and_no_type() {
    let rendered = Reply::no_content().render().unwrap();
    assert_eq!(rendered, Rendered { status: 204, headers: Vec::new(), body: Bytes::new() });
}

#[test]
fn a_reply_that_cannot_be_told_is_our_fault() {
    // A map with pairs as keys has no JSON form.
    assert_eq!(Reply::ok(&HashMap::from([((1, 2), 3)])).render().unwrap_err().status(), 500);
    assert_eq!(Reply::created("/orders/\n", &()).render().unwrap_err().status(), 500);
}
