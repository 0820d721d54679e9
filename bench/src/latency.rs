//! P4: from the return of COMMIT to the arrival at a reader of the stream, at 200 facts a second, the service idle
//! otherwise. The reader's own delivery is part of the figure, so the fact is stored earlier than it says.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use async_nats::jetstream;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use envelope::Event;
use futures_util::StreamExt;
use hdrhistogram::Histogram;
use uuid::Uuid;

use crate::fact::Happened;
use crate::report::{Goal, Report, Series};
use crate::rig::{Rig, Sync};
use crate::verify;

/// Facts a second.
const RATE: u32 = 200;

/// Facts of a run: ten seconds.
const FACTS: usize = 2_000;

/// Measures both durability settings.
pub(crate) async fn commit_to_stored(report: &mut Report, runs: usize) -> anyhow::Result<()> {
    for (sync, p50_goal, p99_goal) in [(Sync::Always, 3.0, 15.0), (Sync::Default, 2.0, 8.0)] {
        let mut p50 = Series::new("p50, ms");
        let mut p99 = Series::new("p99, ms");
        for run in 0..=runs {
            eprintln!("P4 {} run {run} of {runs}", sync.label());
            let histogram = measure(&Rig::start(sync).await?).await?;
            if run > 0 {
                p50.push(histogram.value_at_quantile(0.5) as f64 / 1_000.0);
                p99.push(histogram.value_at_quantile(0.99) as f64 / 1_000.0);
            }
        }
        report.section(&format!("P4: commit to stored at {RATE} facts/s, {}", sync.label()));
        report.value("p50, ms", &p50, Goal::Under(p50_goal));
        report.value("p99, ms", &p99, Goal::Under(p99_goal));
        report.series(&p50);
        report.series(&p99);
    }
    Ok(())
}

async fn measure(rig: &Rig) -> anyhow::Result<Histogram<u64>> {
    let service = rig.service().await?;
    let reader = tokio::spawn(arrivals(rig.nats.admin().await?));
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / RATE);
    let mut committed = HashMap::new();
    for n in 0..FACTS {
        ticks.tick().await;
        let fact = Happened { id: Uuid::from_u128(n as u128 + 1), ..Happened::numbered(n) };
        service.publish(std::slice::from_ref(&fact)).await?;
        committed.insert(fact.key(), Instant::now());
    }
    let arrived = reader.await??;
    let mut histogram = Histogram::<u64>::new(3)?;
    for (key, at) in &committed {
        let arrival = arrived.get(key).ok_or_else(|| anyhow::anyhow!("the fact of {key} did not arrive"))?;
        // A fact can arrive before the writer's own clock is read after its commit.
        histogram.record(u64::try_from(arrival.saturating_duration_since(*at).as_micros())?.max(1))?;
    }
    service.stop().await?;
    verify::nothing_lost_or_reordered(rig, FACTS).await?;
    Ok(histogram)
}

/// When each key's fact reached a reader.
async fn arrivals(client: async_nats::Client) -> anyhow::Result<HashMap<String, Instant>> {
    let stream = jetstream::new(client).get_stream(mesh::STREAM).await?;
    let config =
        pull::Config { ack_policy: AckPolicy::None, deliver_policy: DeliverPolicy::All, ..pull::Config::default() };
    let consumer = stream.create_consumer(config).await?;
    let mut messages = consumer.messages().await?;
    let mut arrived = HashMap::new();
    while arrived.len() < FACTS {
        let Some(message) = messages.next().await else { break };
        let (message, now) = (message?, Instant::now());
        let key = message.headers.as_ref().and_then(|headers| headers.get("ce-partitionkey").cloned());
        arrived.entry(key.map(|key| key.to_string()).unwrap_or_default()).or_insert(now);
    }
    Ok(arrived)
}
