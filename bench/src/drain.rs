//! P3: how fast a backlog drains, against the textbook poller on the same servers; with the raw limits beside it.

use std::time::{Duration, Instant};

use crate::raw;
use crate::report::{Goal, Report, Series};
use crate::rig::{Rig, Sync};
use crate::textbook;
use crate::verify;

/// How long the textbook is watched: its rate is bound by its own sleep and does not change.
const TEXTBOOK_TIME: Duration = Duration::from_secs(10);

/// Messages of a raw measurement.
const RAW_MESSAGES: usize = 100_000;

/// Messages of the slow raw measurement.
const PIPELINED_MESSAGES: usize = 20_000;

/// Drains `rows` facts, `runs` times after one that warms up.
pub(crate) async fn against_textbook(report: &mut Report, runs: usize, rows: usize) -> anyhow::Result<()> {
    let mut relay = Series::new("relay, facts/s");
    let mut textbook = Series::new("textbook poller, facts/s");
    let mut batched = Series::new("bare client, atomic batches of 1000, messages/s");
    let mut pipelined = Series::new("bare client, pipelined singles, messages/s");
    for run in 0..=runs {
        eprintln!("P3 run {run} of {runs} ({})", if run == 0 { "warm-up" } else { "measured" });
        let rig = Rig::start(Sync::Always).await?;
        let rate = drain(&rig, rows).await?;
        let slow = textbook::rate(&rig, 10_000, TEXTBOOK_TIME).await?;
        let best = raw::batched(&rig, RAW_MESSAGES).await?;
        let single = raw::pipelined(&rig, PIPELINED_MESSAGES).await?;
        if run > 0 {
            relay.push(rate);
            textbook.push(slow);
            batched.push(best);
            pipelined.push(single);
        }
    }
    report.section("P3: relay against the textbook poller, same PostgreSQL and nats-server, sync always");
    report.ratio("relay / textbook poller", &relay, &textbook, Goal::AtLeast(100.0));
    report.ratio("relay / bare client in batches (P1, for orientation)", &relay, &batched, Goal::AtLeast(0.85));
    report.ratio("relay / bare client, pipelined (P1, for orientation)", &relay, &pipelined, Goal::AtLeast(7.0));
    for series in [&relay, &textbook, &batched, &pipelined] {
        report.series(series);
    }
    Ok(())
}

/// Facts a second from the start of the relay to the last acknowledged row.
async fn drain(rig: &Rig, rows: usize) -> anyhow::Result<f64> {
    rig.fill(rows).await?;
    anyhow::ensure!(rig.pending().await? == i64::try_from(rows)?, "the backlog was not filled");
    let begun = Instant::now();
    let relay = rig.relay().await?;
    let mut look = tokio::time::interval(Duration::from_millis(10));
    while !rig.is_drained().await? {
        look.tick().await;
    }
    let rate = rows as f64 / begun.elapsed().as_secs_f64();
    relay.stop().await?;
    verify::nothing_lost_or_reordered(rig, rows).await?;
    Ok(rate)
}
