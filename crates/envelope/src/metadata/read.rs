//! Headers back to metadata: names folded, values decoded once, contradictions refused.

use std::{collections::BTreeMap, str::FromStr};

use uuid::Uuid;

use super::{HeaderError, JSON, Metadata, SCHEMA_ROOT, SPEC_VERSION, TraceContext, is_extension};
use crate::{EventType, Timestamp, headers, percent};

/// Longest part of a bad value that an error repeats.
const SHOWN_CHARS_MAX: usize = 80;

impl Metadata {
    /// Reads the envelope out of headers in any order and case. Headers that are none of the envelope's are not looked at.
    ///
    /// Missing `ce-dataschema`, `ce-emitter`, `ce-sequence` and `mesh-hops` read as 0 or empty, so that a publisher in
    /// another language needs only the CloudEvents attributes; `ce-partitionkey` and `ce-subject` stand in for each other.
    ///
    /// # Errors
    /// When a required header is missing, a value is malformed, or two headers contradict each other.
    pub fn from_headers<'a>(lines: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, HeaderError> {
        let fields = Fields::fold(lines)?;
        fields.check_mode()?;
        let event_type: EventType = fields.required(headers::CE_TYPE)?.parse()?;
        Ok(Self {
            id: fields.required_id(headers::CE_ID)?,
            source: fields.required(headers::CE_SOURCE)?.to_owned(),
            time: fields.time()?,
            key: fields.key()?,
            revision: fields.revision(&event_type)?,
            correlation_id: fields.required_id(headers::CE_CORRELATIONID)?,
            causation_id: fields.id(headers::CE_CAUSATIONID)?,
            sequence: fields.number(headers::CE_SEQUENCE)?,
            emitter: fields.get(headers::CE_EMITTER).unwrap_or_default().to_owned(),
            hops: fields.number(headers::MESH_HOPS)?,
            trace: fields.trace(),
            occurrence_id: fields.id(headers::CE_OCCURRENCEID)?,
            extensions: fields.extensions(),
            event_type,
        })
    }
}

/// The envelope's headers by folded name, values decoded.
struct Fields(BTreeMap<String, String>);

impl Fields {
    fn fold<'a>(lines: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, HeaderError> {
        let mut fields: BTreeMap<String, String> = BTreeMap::new();
        for (raw_name, raw_value) in lines {
            let name = raw_name.to_ascii_lowercase();
            if !(name.starts_with("ce-") || name == headers::CONTENT_TYPE || name == headers::MESH_HOPS) {
                continue;
            }
            let value = percent::decode(raw_value).map_err(|why| HeaderError::Encoding { name: name.clone(), why })?;
            match fields.get(&name) {
                Some(other) if *other != value => return Err(HeaderError::Contradiction(name)),
                Some(_) => {}
                None => {
                    fields.insert(name, value);
                }
            }
        }
        Ok(Self(fields))
    }

    /// Binary mode, version 1.0, JSON.
    fn check_mode(&self) -> Result<(), HeaderError> {
        let essence =
            |name| self.get(name).map(|value| value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        if let Some(media) = essence(headers::CONTENT_TYPE).filter(|media| media.starts_with("application/cloudevents"))
        {
            return Err(HeaderError::StructuredMode(media));
        }
        let version = self.required(headers::CE_SPECVERSION)?;
        if version != SPEC_VERSION {
            return Err(invalid(headers::CE_SPECVERSION, version, "1.0"));
        }
        for name in [headers::CONTENT_TYPE, headers::CE_DATACONTENTTYPE] {
            if let Some(media) = essence(name).filter(|media| media != JSON) {
                return Err(invalid(name, &media, JSON));
            }
        }
        Ok(())
    }

    /// An empty value is an absent attribute: CloudEvents has no empty ones.
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn required(&self, name: &'static str) -> Result<&str, HeaderError> {
        self.get(name).ok_or(HeaderError::Missing(name))
    }

    fn required_id(&self, name: &'static str) -> Result<Uuid, HeaderError> {
        self.id(name)?.ok_or(HeaderError::Missing(name))
    }

    fn id(&self, name: &'static str) -> Result<Option<Uuid>, HeaderError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match Uuid::from_str(value) {
            Ok(id) if !id.is_nil() => Ok(Some(id)),
            _ => Err(invalid(name, value, "a UUID that is not nil")),
        }
    }

    fn time(&self) -> Result<Timestamp, HeaderError> {
        let value = self.required(headers::CE_TIME)?;
        Timestamp::from_rfc3339(value).map_err(|_| invalid(headers::CE_TIME, value, "an RFC 3339 instant"))
    }

    fn key(&self) -> Result<String, HeaderError> {
        match (self.get(headers::CE_PARTITIONKEY), self.get(headers::CE_SUBJECT)) {
            (Some(key), Some(subject)) if key != subject => {
                Err(HeaderError::Contradiction(headers::CE_PARTITIONKEY.to_owned()))
            }
            (Some(key), _) | (None, Some(key)) => Ok(key.to_owned()),
            (None, None) => Err(HeaderError::Missing(headers::CE_PARTITIONKEY)),
        }
    }

    /// The revision out of `ce-dataschema`. A schema that is not named in the mesh's form says nothing; one that names
    /// another fact or major is a contradiction.
    fn revision(&self, event_type: &EventType) -> Result<u16, HeaderError> {
        let Some(name) = self.get(headers::CE_DATASCHEMA).and_then(|uri| uri.strip_prefix(SCHEMA_ROOT)) else {
            return Ok(0);
        };
        let prefix = format!("{}:{}:", event_type.fact(), event_type.major);
        match name.strip_prefix(&prefix).map(str::parse) {
            Some(Ok(revision)) => Ok(revision),
            _ => Err(HeaderError::Contradiction(headers::CE_DATASCHEMA.to_owned())),
        }
    }

    /// An unsigned decimal, 0 when absent.
    fn number<N: FromStr + Default>(&self, name: &'static str) -> Result<N, HeaderError> {
        let Some(value) = self.get(name) else { return Ok(N::default()) };
        let digits = value.bytes().all(|b| b.is_ascii_digit());
        let number = value.parse().ok().filter(|_| digits);
        number.ok_or_else(|| invalid(name, value, "an unsigned decimal number in range"))
    }

    /// A trace context that is not well-formed is none: tracing never parks a fact.
    fn trace(&self) -> Option<TraceContext> {
        let traceparent = self.get(headers::CE_TRACEPARENT)?.to_owned();
        let tracestate = self.get(headers::CE_TRACESTATE).map(str::to_owned);
        Some(TraceContext { traceparent, tracestate }).filter(TraceContext::is_valid)
    }

    fn extensions(self) -> Vec<(String, String)> {
        self.0.into_iter().filter(|(name, _)| is_extension(name)).collect()
    }
}

fn invalid(name: &'static str, value: &str, expected: &'static str) -> HeaderError {
    HeaderError::Invalid { name, value: value.chars().take(SHOWN_CHARS_MAX).collect(), expected }
}
