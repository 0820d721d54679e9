use axum::body::to_bytes;
use serde_json::{Value, json};

use super::*;

async fn sent(problem: Problem) -> (Response<()>, Value) {
    let (parts, body) = problem.into_response().into_parts();
    let body = to_bytes(body, 4096).await.unwrap();
    (Response::from_parts(parts, ()), serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn a_problem_has_the_members_of_the_rfc() {
    let problem = Problem::invalid(vec![FieldError::new("lines[0].quantity", "must be positive")]).at("/orders");
    let (response, body) = sent(problem).await;
    assert_eq!(response.status(), 422);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert_eq!(
        body,
        json!({
            "type": "urn:mesh:problem:invalid",
            "title": "Unprocessable Entity",
            "status": 422,
            "detail": "lines[0].quantity: must be positive",
            "instance": "/orders",
            "errors": [{ "field": "lines[0].quantity", "detail": "must be positive" }],
        })
    );
}

#[tokio::test]
async fn a_database_that_is_away_asks_to_come_back() {
    let (response, body) = sent(sqlx::Error::PoolTimedOut.into()).await;
    assert_eq!((response.status().as_u16(), &body["title"]), (503, &json!("Service Unavailable")));
    assert_eq!(response.headers()["retry-after"], "1");
}

#[tokio::test]
async fn causes_stay_inside() {
    let problem = Problem::internal(anyhow::anyhow!("column secret_plan does not exist"));
    assert!(format!("{:#}", problem.cause().unwrap()).contains("secret_plan"));
    let (response, body) = sent(problem).await;
    assert_eq!(response.status(), 500);
    assert!(!body.to_string().contains("secret_plan"), "{body}");
}

#[test]
fn wrapped_errors_keep_their_meaning() {
    let outage = anyhow::Error::from(sqlx::Error::PoolTimedOut);
    assert_eq!(Problem::from(outage).status(), 503);
    let refused = anyhow::Error::from(Problem::conflict("taken"));
    assert_eq!(Problem::from(refused).status(), 409);
    let large = anyhow::Error::from(PublishError::TooLarge { bytes: 2, limit: 1 });
    assert_eq!(Problem::from(large).status(), 413);
    assert_eq!(Problem::from(anyhow::anyhow!("other")).status(), 500);
}
