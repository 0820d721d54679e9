//! What a ready run says about itself.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::target::DevRecord;

/// The record of a run, and for people its addresses and what to do next.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Table {
    record: DevRecord,
    #[serde(skip)]
    logs: PathBuf,
}

impl Table {
    pub(super) fn new(record: DevRecord, logs: PathBuf) -> Self {
        Self { record, logs }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let services =
            self.record.services.iter().flat_map(|(name, replicas)| {
                replicas.iter().map(move |replica| (name.as_str(), replica.http_url.clone()))
            });
        let servers = [("NATS", self.record.nats.url.clone()), ("NATS monitor", self.record.nats.monitor_url.clone())];
        for (name, url) in services.chain(servers) {
            writeln!(f, "{name:<13} {url}")?;
        }
        writeln!(f, "{:<13} {}", "logs", self.logs.display())?;
        writeln!(f, "\nplace an order:  meshctl order --wait")?;
        write!(f, "see its story:   meshctl flows show ORDER_ID")
    }
}
