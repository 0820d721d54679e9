//! Stock keeping units.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

const PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";
const LEN_MAX: usize = 64;

/// A stock keeping unit: 1 to 64 of `A-Z a-z 0-9 . _ -`, beginning with a letter or digit. Fits a URL path as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sku(String);

/// The text is no SKU.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a SKU: it must match {PATTERN}")]
pub struct SkuError(String);

impl Sku {
    /// Checks and takes a SKU.
    pub fn parse(text: &str) -> Result<Self, SkuError> {
        let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let begins = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if begins && text.len() <= LEN_MAX && text.bytes().all(legal) {
            Ok(Self(text.to_owned()))
        } else {
            Err(SkuError(text.chars().take(LEN_MAX).collect()))
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Sku {
    type Error = SkuError;

    fn try_from(text: String) -> Result<Self, SkuError> {
        Self::parse(&text)
    }
}

impl From<Sku> for String {
    fn from(sku: Sku) -> Self {
        sku.0
    }
}

impl fmt::Display for Sku {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for Sku {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sku".into()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        concat!(module_path!(), "::Sku").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": PATTERN, "description": "Stock keeping unit." })
    }
}
