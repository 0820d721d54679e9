//! What a client sees besides the work: errors as problems, limits, metrics.

use reqwest::StatusCode;
use serde_json::json;
use testkit::wait;

use crate::shop::{PATIENCE, Shop, problem};

#[tokio::test]
async fn every_error_is_a_problem() {
    let shop = Shop::open().await;
    let (status, unknown) = problem(shop.get("/nowhere")).await;
    assert_eq!((status, &unknown["instance"]), (StatusCode::NOT_FOUND, &json!("/nowhere")));
    let (status, missing) = problem(shop.get("/tallies/none")).await;
    assert_eq!((status, &missing["detail"]), (StatusCode::NOT_FOUND, &json!("no tally is called none")));
    let (status, _) = problem(shop.get("/ids/not-a-uuid")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let (status, panicked) = problem(shop.get("/panic")).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(!panicked.to_string().contains("as asked"), "{panicked}");
    let (status, internal) = problem(shop.post("/refuse/internal")).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(!internal.to_string().contains("secret"), "{internal}");
}

#[tokio::test]
async fn a_wrong_method_names_the_right_ones() {
    let shop = Shop::open().await;
    let response = shop.get("/slow/a").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    let allowed = response.headers()["allow"].to_str().unwrap().to_owned();
    assert!(allowed.contains("POST") && allowed.contains("PUT"), "{allowed}");
    assert_eq!(response.headers()["content-type"], "application/problem+json");
}

#[tokio::test]
async fn bodies_are_limited_in_form_and_size() {
    let shop = Shop::open().await;
    let with =
        |content_type: &str, body: String| shop.post("/tallies/a").header("content-type", content_type).body(body);
    let large = format!("{{\"amount\":1,\"note\":\"{}\"}}", "x".repeat(300 * 1024));
    assert_eq!(problem(with("application/json", large)).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(problem(with("text/plain", "{}".to_owned())).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(problem(with("application/json", "{".to_owned())).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(problem(with("application/json", String::new())).await.0, StatusCode::BAD_REQUEST);
    let (status, unknown) = problem(with("application/json", "{\"amount\":1,\"x\":2}".to_owned())).await;
    assert_eq!((status, &unknown["errors"][0]["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("x")));
    let huge = "{\"amount\":9223372036854775808}".to_owned();
    let (status, huge) = problem(with("application/json", huge)).await;
    assert_eq!((status, &huge["errors"][0]["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("amount")));
    let (status, key) = problem(shop.add("/tallies/a", "two words")).await;
    assert_eq!((status, &key["errors"][0]["field"]), (StatusCode::BAD_REQUEST, &json!("Idempotency-Key")));
}

#[tokio::test]
async fn requests_are_measured_by_route_and_status() {
    let shop = Shop::open().await;
    shop.add("/tallies/measured", "k-1").send().await.unwrap();
    shop.add("/tallies/measured", "k-1").send().await.unwrap();
    shop.get("/nowhere").send().await.unwrap();
    let measured = wait::until("the requests are measured", PATIENCE, || async {
        let response = shop.get("/metrics").send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
        let text = response.text().await.unwrap();
        let expected = [
            "http_request_seconds_count{operation=\"POST /tallies/{name}\",status=\"201\"}",
            "http_request_seconds_count{operation=\"GET unmatched\",status=\"404\"}",
            "http_idempotency_total{operation=\"add\",outcome=\"replayed\"}",
            "process_resident_memory_bytes ",
        ];
        match expected.iter().find(|series| !text.contains(*series)) {
            None => Ok(text),
            Some(missing) => Err(format!("no {missing}")),
        }
    });
    let text = measured.await.unwrap();
    assert!(!text.contains("measured"), "a path with a name is no label");
}
