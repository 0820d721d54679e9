//! Query parameters and path parameters that name what is wrong with them.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::{FieldError, Problem};

/// Query parameters as `T`; a type with `#[serde(deny_unknown_fields)]` refuses the others.
#[derive(Debug, Clone, Copy, Default)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(parameters)) => Ok(Self(parameters)),
            Err(rejection) => Err(refused(&rejection.body_text())),
        }
    }
}

/// The text is `<preamble>: <path>: <reason>`, without the path when the mistake is in no one value.
fn refused(text: &str) -> Problem {
    let reason = text.split_once(": ").map_or(text, |(_, reason)| reason);
    let (field, detail) = match reason.split_once(": ") {
        Some((field, detail)) => (field, detail),
        None => (reason.split('`').nth(1).unwrap_or("query"), reason),
    };
    Problem::invalid(vec![FieldError::new(field, detail)])
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use serde::Deserialize;

    use super::*;
    use crate::http::Limit;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Parameters {
        status: String,
        #[serde(default)]
        limit: Limit,
    }

    async fn read(query: &str) -> Result<Parameters, String> {
        let request = Request::builder().uri(format!("http://h/list?{query}")).body(()).unwrap();
        let (mut parts, ()) = request.into_parts();
        let Query(parameters) =
            Query::from_request_parts(&mut parts, &()).await.map_err(|problem| problem.to_string())?;
        Ok(parameters)
    }

    #[tokio::test]
    async fn parameters_are_typed() {
        let parameters = read("status=pending&limit=200").await.unwrap();
        assert_eq!((parameters.status.as_str(), parameters.limit.get()), ("pending", 200));
        assert_eq!(read("status=a%20b").await.unwrap().limit.get(), 50);
    }

    #[tokio::test]
    async fn mistakes_name_the_parameter() {
        let check = async |query: &str, start: &str| {
            let problem = read(query).await.unwrap_err();
            assert!(problem.contains(start), "{query}: {problem}");
        };
        check("status=x&limit=0", "limit: expected 1 to 200").await;
        check("status=x&limit=201", "limit: expected 1 to 200").await;
        check("status=x&limit=many", "limit: ").await;
        check("limit=1", "status: missing field `status`").await;
        check("status=x&colour=red", "colour: unknown field `colour`").await;
    }
}
