//! Which letters are meant: by number, or by what they have in common.

use std::collections::BTreeMap;
use std::str::FromStr;

use clap::Args;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::dev;
use crate::outcome::Failure;

/// What letters have in common. Everything that is given has to agree.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Which letters")]
pub(super) struct Filter {
    /// Of this service; of all of them without it
    #[arg(long, value_name = "NAME")]
    pub(super) service: Option<String>,
    /// Of this subscriber
    #[arg(long, value_name = "NAME")]
    subscriber: Option<String>,
    /// Kept for this reason: rejected, attempts_exhausted, behind, newer_version, bad_body ...
    #[arg(long, value_name = "CODE")]
    reason: Option<String>,
    /// In this state; parked and dead without it
    #[arg(long, value_parser = ["parked", "dead", "discarded", "all"])]
    state: Option<String>,
    /// Of this type of fact, with its major
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Of this key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Of this flow: of an order, its id
    #[arg(long, value_name = "UUID")]
    flow: Option<Uuid>,
    /// Of this fact
    #[arg(long, value_name = "UUID")]
    event: Option<Uuid>,
}

/// A letter by its service and its number: `payments/17`, or `17` with `--service payments`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LetterName {
    service: Option<String>,
    id: i64,
}

impl FromStr for LetterName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (service, id) = match text.split_once('/') {
            Some((service, id)) if !service.is_empty() => (Some(service.to_owned()), id),
            Some(_) => return Err("expected SERVICE/NUMBER".to_owned()),
            None => (None, text),
        };
        let id = id.parse().map_err(|_| "expected SERVICE/NUMBER, or NUMBER with --service".to_owned())?;
        Ok(Self { service, id })
    }
}

impl LetterName {
    /// The service and the number; `service` is that of the command line.
    ///
    /// # Errors
    /// A usage error when the service is not named, or is another one.
    pub(super) fn resolve(&self, service: Option<&str>) -> anyhow::Result<(String, i64)> {
        match (self.service.as_deref(), service) {
            (Some(own), Some(other)) if own != other => {
                Err(Failure::usage(format!("{own}/{} is no letter of {other}", self.id)))
            }
            (Some(name), _) | (None, Some(name)) => Ok((name.to_owned(), self.id)),
            (None, None) => Err(Failure::usage(format!("of which service? Write SERVICE/{}", self.id))),
        }
    }
}

impl Filter {
    /// The services that are asked.
    pub(super) fn services(&self) -> Vec<String> {
        self.service
            .as_ref()
            .map_or_else(|| dev::WITH_DATABASE.map(str::to_owned).to_vec(), |service| vec![service.clone()])
    }

    fn is_empty(&self) -> bool {
        self.members().is_empty() && self.service.is_none()
    }

    /// The filter as services read it.
    pub(super) fn members(&self) -> Map<String, Value> {
        let texts = [
            ("subscriber", &self.subscriber),
            ("reason", &self.reason),
            ("state", &self.state),
            ("event_type", &self.event_type),
            ("key", &self.key),
        ];
        let texts = texts.into_iter().filter_map(|(name, value)| Some((name, json!(value.as_ref()?))));
        let ids = [("flow", self.flow), ("event_id", self.event)];
        let ids = ids.into_iter().filter_map(|(name, value)| Some((name, json!(value?))));
        texts.chain(ids).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// What each service is asked for: the letters by number, or everything that agrees.
    ///
    /// # Errors
    /// A usage error when nothing is named and `all` does not say that everything is meant.
    pub(super) fn by_service(&self, letters: &[LetterName], all: bool) -> anyhow::Result<BTreeMap<String, Value>> {
        if letters.is_empty() && self.is_empty() && !all {
            return Err(Failure::usage("which letters? Name them, say what they have in common, or say --all"));
        }
        let mut ids: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for letter in letters {
            let (service, id) = letter.resolve(self.service.as_deref())?;
            ids.entry(service).or_default().push(id);
        }
        if ids.is_empty() {
            return Ok(self.services().into_iter().map(|service| (service, self.members().into())).collect());
        }
        let named = |(service, mut ids): (String, Vec<i64>)| {
            ids.sort_unstable();
            ids.dedup();
            let mut filter = self.members();
            filter.insert("ids".to_owned(), json!(ids));
            (service, Value::from(filter))
        };
        Ok(ids.into_iter().map(named).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str]) -> Vec<LetterName> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn letters_are_asked_for_where_they_are() {
        let by_service =
            Filter::default().by_service(&names(&["payments/3", "orders/3", "payments/1", "payments/3"]), false);
        let by_service = by_service.unwrap();
        assert_eq!(by_service["payments"], json!({ "ids": [1, 3] }));
        assert_eq!(by_service["orders"], json!({ "ids": [3] }));
        let payments = Filter { service: Some("payments".to_owned()), ..Filter::default() };
        assert_eq!(payments.by_service(&names(&["7"]), false).unwrap()["payments"], json!({ "ids": [7] }));
        assert!(payments.by_service(&names(&["orders/7"]), false).is_err());
        assert!(Filter::default().by_service(&names(&["7"]), false).is_err(), "of which service?");
    }

    #[test]
    fn everything_is_meant_only_when_that_is_said() {
        assert!(Filter::default().by_service(&[], false).is_err());
        assert_eq!(Filter::default().by_service(&[], true).unwrap().len(), dev::WITH_DATABASE.len());
        let rejected = Filter { reason: Some("rejected".to_owned()), ..Filter::default() };
        assert_eq!(rejected.by_service(&[], false).unwrap()["orders"], json!({ "reason": "rejected" }));
    }

    #[test]
    fn a_letter_has_a_service_and_a_number() {
        assert!("payments/17".parse::<LetterName>().is_ok() && "17".parse::<LetterName>().is_ok());
        for wrong in ["", "/17", "payments/", "payments", "payments/x", "17/payments"] {
            assert!(wrong.parse::<LetterName>().is_err(), "{wrong}");
        }
    }
}
