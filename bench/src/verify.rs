//! No figure without this check: the stream holds every committed fact once, in order per key.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, ensure};
use async_nats::jetstream;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use futures_util::StreamExt;

use crate::rig::Rig;

/// Reads the whole stream and checks it against the number of facts that were committed.
pub(crate) async fn nothing_lost_or_reordered(rig: &Rig, committed: usize) -> anyhow::Result<()> {
    let jetstream = jetstream::new(rig.nats.admin().await?);
    let stream = jetstream.get_stream(mesh::STREAM).await?;
    let stored = usize::try_from(stream.cached_info().state.messages)?;
    let config =
        pull::Config { ack_policy: AckPolicy::None, deliver_policy: DeliverPolicy::All, ..pull::Config::default() };
    let consumer = stream.create_consumer(config).await?;
    let mut ids = HashSet::new();
    let mut versions: HashMap<String, u64> = HashMap::new();
    let mut messages = consumer.messages().await?.take(stored);
    while let Some(message) = messages.next().await {
        let message = message?;
        let headers = message.headers.as_ref().context("a message without headers")?;
        let header = |name: &str| headers.get(name).map(ToString::to_string).with_context(|| format!("no {name}"));
        if !ids.insert(header("ce-id")?) {
            continue;
        }
        let version: u64 = header("ce-sequence")?.parse()?;
        let last = versions.entry(header("ce-partitionkey")?).or_default();
        ensure!(version == *last + 1, "a key went from version {last} to {version}");
        *last = version;
    }
    ensure!(ids.len() == committed, "{committed} facts were committed, {} are in the stream", ids.len());
    ensure!(stored == committed, "{stored} messages for {committed} facts: something was stored twice");
    Ok(())
}
