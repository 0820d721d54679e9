//! Instants as facts write them: RFC 3339, UTC, exactly three digits of a second, `Z`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::{OffsetDateTime, UtcOffset, format_description::well_known::Rfc3339};

/// 0000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z, in milliseconds since 1970: what four digits of a year can say.
const MILLIS_MIN: i128 = -62_167_219_200_000;
const MILLIS_MAX: i128 = 253_402_300_799_999;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// An instant with millisecond precision.
///
/// PostgreSQL keeps microseconds, JavaScript milliseconds, Rust nanoseconds: at the coarsest of them an instant stays
/// equal to itself wherever it travels. Facts are never ordered by it; the stream sequence does that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(OffsetDateTime);

/// Why a text is not a timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an instant of the form YYYY-MM-DDThh:mm:ss.SSSZ")]
pub struct TimestampError(String);

impl Timestamp {
    /// The instant, cut down to its millisecond and moved to UTC. Years outside 0 to 9999 become the nearest bound.
    pub fn from_offset(instant: OffsetDateTime) -> Self {
        let millis = instant.unix_timestamp_nanos().div_euclid(NANOS_PER_MILLI).clamp(MILLIS_MIN, MILLIS_MAX);
        // Within the bounds the conversion cannot fail.
        Self(OffsetDateTime::from_unix_timestamp_nanos(millis * NANOS_PER_MILLI).unwrap_or(OffsetDateTime::UNIX_EPOCH))
    }

    /// The instant as the database driver takes it.
    pub fn as_offset(&self) -> OffsetDateTime {
        self.0
    }

    /// Milliseconds since 1970.
    pub fn unix_millis(&self) -> i64 {
        i64::try_from(self.0.unix_timestamp_nanos().div_euclid(NANOS_PER_MILLI)).unwrap_or(i64::MAX)
    }

    /// Reads any RFC 3339 instant: other offsets and other precisions, as foreign publishers write them.
    ///
    /// # Errors
    /// When the text is no RFC 3339 date and time with an offset.
    pub fn from_rfc3339(text: &str) -> Result<Self, TimestampError> {
        OffsetDateTime::parse(text, &Rfc3339).map(Self::from_offset).map_err(|_| TimestampError(text.to_owned()))
    }
}

impl From<OffsetDateTime> for Timestamp {
    fn from(instant: OffsetDateTime) -> Self {
        Self::from_offset(instant)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.0.to_offset(UtcOffset::UTC);
        let (hour, minute, second, milli) = at.to_hms_milli();
        write!(f, "{:04}-{:02}-{:02}T", at.year(), u8::from(at.month()), at.day())?;
        write!(f, "{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// Accepts only the form that [`fmt::Display`] writes; [`Timestamp::from_rfc3339`] is the lenient one.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let instant = Self::from_rfc3339(text)?;
        if instant.to_string() == text { Ok(instant) } else { Err(TimestampError(text.to_owned())) }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    /// Lenient, as a reader is: any RFC 3339 instant.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_rfc3339(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
