//! Lists in pieces: opaque keyset cursors, so that a page costs the same wherever it is and misses nothing that stays.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};

use super::{FieldError, Problem};

/// Items of a page when the caller does not say.
const LIMIT_DEFAULT: u16 = 50;
/// Most items of a page.
const LIMIT_MAX: u16 = 200;

/// Turns the sort key of the last item into text that a caller gives back for the next page, and back.
#[derive(Debug, Clone, Copy)]
pub struct Cursor;

impl Cursor {
    /// The cursor behind `key`. Callers must not look into it.
    ///
    /// # Errors
    /// When the key has no JSON form.
    pub fn encode<T: Serialize>(key: &T) -> Result<String, Problem> {
        Ok(URL_SAFE_NO_PAD.encode(serde_json::to_vec(key).map_err(Problem::internal)?))
    }

    /// The key in a cursor.
    ///
    /// # Errors
    /// A problem that names `cursor` when it is not one that this list gave out.
    pub fn decode<T: DeserializeOwned>(cursor: &str) -> Result<T, Problem> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
        bytes
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or_else(|| Problem::invalid(vec![FieldError::new("cursor", "is not one that this list gave out")]))
    }
}

/// How many items a page may have: 1 to 200, 50 when absent (`#[serde(default)]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(u16);

impl Limit {
    /// The number of items, for a `limit` clause.
    #[must_use]
    pub fn get(self) -> usize {
        usize::from(self.0)
    }

    /// One more than fits, for the query: if it comes back, there is a next page.
    #[must_use]
    pub fn and_one(self) -> i64 {
        i64::from(self.0) + 1
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self(LIMIT_DEFAULT)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let limit = u16::deserialize(deserializer)?;
        if (1..=LIMIT_MAX).contains(&limit) {
            return Ok(Self(limit));
        }
        Err(D::Error::custom(format!("expected 1 to {LIMIT_MAX}")))
    }
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Page<T> {
    /// The items, in the order of the list.
    pub items: Vec<T>,
    /// What to give as `cursor` for the next page; null on the last one.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// A page of at most `limit` of `items`, which the query read with [`Limit::and_one`]; `key` is the sort key of an
    /// item.
    ///
    /// # Errors
    /// When the key has no JSON form.
    pub fn new<K: Serialize>(mut items: Vec<T>, limit: Limit, key: impl Fn(&T) -> K) -> Result<Self, Problem> {
        let more = items.len() > limit.get();
        items.truncate(limit.get());
        let next_cursor = items.last().filter(|_| more).map(|last| Cursor::encode(&key(last))).transpose()?;
        Ok(Self { items, next_cursor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_gives_back_its_key_and_nothing_else_is_one() {
        let key = ("2026-01-02T03:04:05Z".to_owned(), 7_u64);
        let cursor = Cursor::encode(&key).unwrap();
        assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'), "{cursor}");
        assert_eq!(Cursor::decode::<(String, u64)>(&cursor).unwrap(), key);
        for wrong in ["", "!", "eyJ9", &cursor[1..], &Cursor::encode(&"text").unwrap()] {
            assert_eq!(Cursor::decode::<(String, u64)>(wrong).unwrap_err().status().as_u16(), 422, "{wrong}");
        }
    }

    #[test]
    fn a_page_has_a_cursor_only_if_there_is_more() {
        let limit = Limit(2);
        assert_eq!(limit.and_one(), 3);
        let page = Page::new(vec![1, 2, 3], limit, |item| *item).unwrap();
        assert_eq!(page.items, [1, 2]);
        assert_eq!(Cursor::decode::<i32>(&page.next_cursor.unwrap()).unwrap(), 2);
        assert_eq!(Page::new(vec![1, 2], limit, |item| *item).unwrap().next_cursor, None);
        assert_eq!(Page::new(Vec::<i32>::new(), limit, |item| *item).unwrap().next_cursor, None);
    }
}
