//! Path parameters whose rejection is a problem.

use axum::extract::FromRequestParts;
use axum::extract::rejection::PathRejection;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::Problem;

/// Path parameters as `T`. One that cannot be read names nothing that exists, which is said as 400 rather than 404, so
/// that a broken client is not taken for a missing resource.
#[derive(Debug, Clone, Copy, Default)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(parameters)) => Ok(Self(parameters)),
            Err(rejection @ PathRejection::FailedToDeserializePathParams(_)) => {
                Err(Problem::bad_request(format!("the path cannot be read: {}", rejection.body_text())))
            }
            // The type asks for parameters that the route does not have.
            Err(rejection) => Err(Problem::internal(rejection)),
        }
    }
}
