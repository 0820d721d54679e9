use axum::http::HeaderValue;

use super::*;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    currency: String,
    lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    quantity: u32,
    unit_price: i64,
}

fn json_headers(content_type: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))])
}

fn parse_json<T: DeserializeOwned>(body: &str) -> Result<Parsed<T>, Problem> {
    parse(&json_headers("application/json"), body.as_bytes())
}

/// The status, and the field when one is named.
fn refused(body: &str) -> (u16, String) {
    let problem = parse_json::<Order>(body).unwrap_err();
    let document = serde_json::to_value(problem.document()).unwrap();
    let field = document["errors"][0]["field"].as_str().unwrap_or_default().to_owned();
    (problem.status().as_u16(), field)
}

#[test]
fn a_body_is_typed_and_its_spelling_forgotten() {
    let one = parse_json::<Order>(r#"{"currency":"EUR","lines":[{"quantity":2,"unit_price":1999}]}"#).unwrap();
    let two = parse_json::<Order>(
        "{ \"lines\" : [ { \"unit_price\" : 1999, \"quantity\" : 2 } ],\n \"currency\" : \"\\u0045UR\" }",
    )
    .unwrap();
    assert_eq!(one.value.lines, [Line { quantity: 2, unit_price: 1999 }]);
    assert_eq!(one.value, two.value);
    assert_eq!(one.canonical, two.canonical);
    let other = parse_json::<Order>(r#"{"currency":"EUR","lines":[{"quantity":3,"unit_price":1999}]}"#).unwrap();
    assert_ne!(one.canonical, other.canonical);
}

#[test]
fn mistakes_name_their_member() {
    let check = |body: &str, field: &str| assert_eq!(refused(body), (422, field.to_owned()), "{body}");
    let line = |line: &str| format!(r#"{{"currency":"EUR","lines":[{{"quantity":1,"unit_price":1}},{line}]}}"#);
    check(r#"{"lines":[]}"#, "currency");
    check(r#"{"currency":"EUR","lines":[],"note":1}"#, "note");
    check(r#"{"currency":1,"lines":[]}"#, "currency");
    check(r#"{"currency":"EUR","lines":{}}"#, "lines");
    check(&line(r#"{"quantity":-1,"unit_price":1}"#), "lines[1].quantity");
    check(&line(r#"{"quantity":4294967296,"unit_price":1}"#), "lines[1].quantity");
    check(&line(r#"{"quantity":1.5,"unit_price":1}"#), "lines[1].quantity");
    check(&line(r#"{"quantity":"1","unit_price":1}"#), "lines[1].quantity");
    check(&line(r#"{"quantity":null,"unit_price":1}"#), "lines[1].quantity");
    check(&line(r#"{"quantity":1}"#), "lines[1].unit_price");
    check(&line(r#"{"quantity":1,"unit_price":1,"colour":"red"}"#), "lines[1].colour");
    check(&line(r#"{"quantity":1,"quantity":1,"unit_price":1}"#), "lines[1].quantity");
    check(&line(r#"{"quantity":1,"unit_price":9007199254740993}"#), "lines[1].unit_price");
    check(&line(r#"{"quantity":1,"unit_price":99999999999999999999999}"#), "lines[1].unit_price");
    check(&line(r#"{"quantity":1,"unit_price":1e400}"#), "lines[1].unit_price");
    check(r#"{"currency":"E\u0000R","lines":[]}"#, "currency");
    check(r#"{"currency":"\ud800","lines":[]}"#, "currency");
}

#[test]
fn what_is_no_json_object_is_a_bad_request() {
    for body in ["{", "[]", "null", "\"x\"", "{}{}", "{\"a\":}", "\u{feff}{}"] {
        assert_eq!(refused(body).0, 400, "{body}");
    }
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100), "]".repeat(100));
    assert_eq!(refused(&deep).0, 400);
    let not_utf8 = parse::<Order>(&json_headers("application/json"), b"{\"currency\":\"\xff\"}").unwrap_err();
    assert_eq!(not_utf8.status(), 400);
}

#[test]
fn only_json_in_utf8_is_taken() {
    let status = |content_type: &'static str| {
        parse::<NoBody>(&json_headers(content_type), b"{}").map_or_else(|problem| problem.status().as_u16(), |_| 200)
    };
    for accepted in ["application/json", "Application/JSON; charset=UTF-8", "application/vnd.shop+json"] {
        assert_eq!(status(accepted), 200, "{accepted}");
    }
    for refused in ["text/plain", "application/xml", "text/json+json", "application/json; charset=latin1", ""] {
        assert_eq!(status(refused), 415, "{refused}");
    }
    assert_eq!(parse::<NoBody>(&HeaderMap::new(), b"{}").unwrap_err().status(), 415);
}

#[test]
fn an_operation_without_a_body_takes_nothing_or_an_empty_object() {
    let none = parse::<NoBody>(&HeaderMap::new(), b"").unwrap();
    let empty = parse_json::<NoBody>("{ }").unwrap();
    assert_eq!(none.canonical, empty.canonical);
    assert_eq!(parse_json::<NoBody>(r#"{"reason":"x"}"#).unwrap_err().status(), 422);
    assert_eq!(parse::<Order>(&HeaderMap::new(), b"").unwrap_err().status(), 400);
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_too_large() {
    assert_eq!(read(Body::from(vec![b' '; BODY_BYTES_MAX])).await.unwrap().len(), BODY_BYTES_MAX);
    assert_eq!(read(Body::from(vec![b' '; BODY_BYTES_MAX + 1])).await.unwrap_err().status(), 413);
    let endless = Body::from_stream(futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 65_536])));
    assert_eq!(read(endless).await.unwrap_err().status(), 413);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_is_given_up() {
    let endless = Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
    assert_eq!(read(endless).await.unwrap_err().status(), 408);
}
