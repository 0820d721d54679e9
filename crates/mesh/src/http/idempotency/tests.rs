use axum::http::HeaderValue;

use super::*;

fn key(values: &[&str]) -> Result<Option<String>, u16> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(HEADER, HeaderValue::from_str(value).unwrap());
    }
    Key::from_headers(&headers).map(|key| key.map(|key| key.0)).map_err(|problem| problem.status().as_u16())
}

#[test]
fn a_key_is_bare_or_quoted() {
    assert_eq!(key(&[]), Ok(None));
    let plain = "8e03978e-40d5-43dd-bc93-6894a57f9324";
    assert_eq!(key(&[plain]), Ok(Some(plain.to_owned())));
    assert_eq!(key(&[&format!("\"{plain}\"")]), Ok(Some(plain.to_owned())));
    assert_eq!(key(&[r#""a\"b\\c""#]), Ok(Some(r#"a"b\c"#.to_owned())));
    assert_eq!(key(&[&"k".repeat(255)]), Ok(Some("k".repeat(255))));
}

#[test]
fn what_is_no_key_is_refused() {
    let too_long = "k".repeat(256);
    for wrong in ["", " ", "\"\"", "a b", "\"a b\"", "\"open", "\"a\"b\"", r#""\n""#, "a\tb", &too_long, "ключ"] {
        assert_eq!(key(&[wrong]), Err(400), "{wrong:?}");
    }
    assert_eq!(key(&["a", "a"]), Err(400), "twice");
}
