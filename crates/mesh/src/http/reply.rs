//! What an operation answers, in a form that can be stored and given again.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;

use super::Problem;

/// A successful answer. It is stored with its idempotency key in the transaction that did the work.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    location: Option<String>,
    body: Option<Result<Vec<u8>, serde_json::Error>>,
}

impl Reply {
    /// 201 with the new resource and where it is.
    pub fn created(location: impl Into<String>, resource: &impl Serialize) -> Self {
        Self { location: Some(location.into()), ..Self::json(StatusCode::CREATED, resource) }
    }

    /// 200 with the resource as it is now.
    pub fn ok(resource: &impl Serialize) -> Self {
        Self::json(StatusCode::OK, resource)
    }

    /// 202: accepted, the rest happens elsewhere.
    pub fn accepted(resource: &impl Serialize) -> Self {
        Self::json(StatusCode::ACCEPTED, resource)
    }

    /// 204.
    #[must_use]
    pub fn no_content() -> Self {
        Self { status: StatusCode::NO_CONTENT, location: None, body: None }
    }

    fn json(status: StatusCode, resource: &impl Serialize) -> Self {
        Self { status, location: None, body: Some(serde_json::to_vec(resource)) }
    }

    /// The reply as bytes. It is made before the commit, so that a reply that cannot be told undoes the work.
    pub(super) fn render(self) -> Result<Rendered, Problem> {
        let mut headers = Vec::new();
        if let Some(location) = self.location {
            headers.push((header::LOCATION.as_str().to_owned(), location));
        }
        let body = match self.body.transpose().map_err(Problem::internal)? {
            Some(json) => {
                headers.push((header::CONTENT_TYPE.as_str().to_owned(), "application/json".to_owned()));
                Bytes::from(json)
            }
            None => Bytes::new(),
        };
        for (name, value) in &headers {
            parse_header(name, value)?;
        }
        Ok(Rendered { status: self.status.as_u16(), headers, body })
    }
}

/// A reply as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rendered {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

impl Rendered {
    /// The reply as it is sent.
    pub(super) fn into_response(self) -> Response {
        match self.build() {
            Ok(response) => response,
            Err(problem) => problem.into_response(),
        }
    }

    fn build(self) -> Result<Response, Problem> {
        let status = StatusCode::from_u16(self.status).map_err(Problem::internal)?;
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = status;
        for (name, value) in &self.headers {
            let (name, value) = parse_header(name, value)?;
            response.headers_mut().insert(name, value);
        }
        Ok(response)
    }
}

fn parse_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Problem> {
    let name = HeaderName::try_from(name).map_err(Problem::internal)?;
    let value = HeaderValue::from_str(value).map_err(Problem::internal)?;
    Ok((name, value))
}

#[cfg(test)]
mod tests;
