//! Messages that the test puts into the stream itself.

use anyhow::{Context, Result};
use async_nats::HeaderMap;
use async_nats::jetstream;
use uuid::Uuid;

use super::Shop;
use crate::checker::{DeadLetter, Stored};

/// A message in the form of a fact, to be spoiled.
#[derive(Debug, Clone)]
pub struct Forged {
    subject: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Forged {
    /// A well-formed message of a type about an order, caused by nothing.
    #[must_use]
    pub fn fact(id: Uuid, domain: &str, fact: &str, major: u16, order_id: Uuid, body: &str) -> Forged {
        let order = order_id.to_string();
        let kind = format!("{domain}.{fact}.v{major}");
        let headers = [
            ("ce-specversion", "1.0".to_owned()),
            ("ce-id", id.to_string()),
            ("ce-source", format!("urn:mesh:{domain}")),
            ("ce-type", kind.clone()),
            ("ce-time", "2026-01-31T09:30:00.123Z".to_owned()),
            ("ce-subject", order.clone()),
            ("ce-datacontenttype", "application/json".to_owned()),
            ("content-type", "application/json".to_owned()),
            ("ce-dataschema", format!("urn:mesh:schema:{domain}.{fact}:{major}:1")),
            ("ce-correlationid", order.clone()),
            ("ce-partitionkey", order.clone()),
            ("ce-emitter", format!("{domain}/forger@0.0.0")),
            ("mesh-hops", "0".to_owned()),
        ];
        Forged {
            subject: format!("evt.{kind}.{}", bucket(&order)),
            headers: headers.map(|(name, value)| (name.to_owned(), value)).into(),
            body: body.as_bytes().to_vec(),
        }
    }

    /// What is stored already, once more.
    #[must_use]
    pub fn again(stored: &Stored) -> Forged {
        let own = |(name, _): &&(String, String)| !name.to_ascii_lowercase().starts_with("nats-");
        Forged {
            subject: stored.subject.clone(),
            headers: stored.headers.iter().filter(own).cloned().collect(),
            body: stored.body.clone(),
        }
    }

    /// Without a header.
    #[must_use]
    pub fn without(mut self, name: &str) -> Forged {
        self.headers.retain(|(given, _)| given != name);
        self
    }

    /// With a header in place of what it said.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Forged {
        let mut forged = self.without(name);
        forged.headers.push((name.to_owned(), value.to_owned()));
        forged
    }

    /// With another body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Forged {
        self.body = body.into();
        self
    }
}

/// FNV-1a of the key, modulo 64: the last token of a subject.
pub(super) fn bucket(key: &str) -> u32 {
    key.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)) % 64
}

impl Shop {
    /// Stores a message in the stream, as one who may do everything; its place there.
    ///
    /// # Errors
    /// When the server does not store it.
    pub async fn store(&self, forged: &Forged, message_id: &str) -> Result<u64> {
        let mut headers = HeaderMap::new();
        for (name, value) in &forged.headers {
            headers.append(name.as_str(), value.as_str());
        }
        headers.insert("Nats-Msg-Id", message_id);
        let jetstream = jetstream::new(self.nats().admin().await?);
        let stored = jetstream
            .publish_with_headers(forged.subject.clone(), headers, forged.body.clone().into())
            .await?
            .await
            .context("store a forged message")?;
        Ok(stored.sequence)
    }

    /// Stores a message that no service has committed, and expects these dead letters of it: service, subscriber, reason.
    ///
    /// # Errors
    /// When the server does not store it.
    pub async fn poison(&self, forged: &Forged, letters: &[(&str, &str, &str)]) -> Result<()> {
        let sequence = self.store(forged, &self.next_key()).await?;
        let mut expected = self.expected();
        expected.forged.insert(sequence);
        let letter = |(service, subscriber, reason): &(&str, &str, &str)| DeadLetter {
            service: (*service).to_owned(),
            subscriber: (*subscriber).to_owned(),
            reason: (*reason).to_owned(),
        };
        expected.dead_letters.extend(letters.iter().map(letter));
        Ok(())
    }
}
