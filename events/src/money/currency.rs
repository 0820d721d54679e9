//! ISO 4217 codes and how many decimal digits their minor units have.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::MoneyError;

/// Active codes of ISO 4217 by the digits of their minor unit. Funds, metals and test codes are left out: nobody pays in them.
const EXPONENT_0: &str = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF";
const EXPONENT_2: &str = "\
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC CUP CVE \
    CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR \
    KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB \
    PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY \
    TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG";
const EXPONENT_3: &str = "BHD IQD JOD KWD LYD OMR TND";

/// A currency code: three capital letters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Currency([u8; 3]);

impl Currency {
    /// A code that the table knows, for whoever makes an amount.
    ///
    /// # Errors
    /// When the text is not three capital letters or the code is not in the table.
    pub fn parse(code: &str) -> Result<Self, MoneyError> {
        let currency = Self::well_formed(code)?;
        match currency.exponent() {
            Some(_) => Ok(currency),
            None => Err(MoneyError::UnknownCurrency(currency)),
        }
    }

    /// A code of the right form, known or not, for whoever reads what others wrote.
    ///
    /// # Errors
    /// When the text is not three capital letters.
    pub fn well_formed(code: &str) -> Result<Self, MoneyError> {
        match code.as_bytes() {
            [a, b, c] if code.bytes().all(|letter| letter.is_ascii_uppercase()) => Ok(Self([*a, *b, *c])),
            _ => Err(MoneyError::MalformedCurrency(code.chars().take(8).collect())),
        }
    }

    /// The digits of the minor unit, if the table knows the code.
    pub fn exponent(self) -> Option<u8> {
        let table = [(0, EXPONENT_0), (2, EXPONENT_2), (3, EXPONENT_3)];
        let listed = |codes: &str| codes.split_ascii_whitespace().any(|code| code.as_bytes() == self.0);
        table.into_iter().find(|(_, codes)| listed(codes)).map(|(exponent, _)| exponent)
    }

    /// The code.
    pub fn as_str(&self) -> &str {
        // Only capital letters get in.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        Self::well_formed(&code).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Currency {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Currency".into()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        concat!(module_path!(), "::Currency").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Z]{3}$", "description": "ISO 4217 code." })
    }
}
