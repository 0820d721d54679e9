//! `load`: orders of every kind at a steady rate, each with the end that it has to come to.

mod goods;
mod mix;
mod report;
mod send;
mod watch;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use tokio::time::Instant;

use crate::broker::Broker;
use crate::flows::duration;
use crate::outcome::{Failure, Outcome};
use crate::output::{Format, Live, say};
use crate::permissions::OPERATOR;
use crate::shop::Shop;
use crate::target::Selection;
use goods::Goods;
use mix::Mix;
use report::Report;
use watch::Watched;

/// Orders in one run at most: every one of them is remembered until its end.
const ORDERS_MAX: u64 = 200_000;
/// How often progress is told.
const TOLD_EVERY: Duration = Duration::from_millis(500);

/// What to send.
#[derive(Debug, Clone, Args)]
pub struct Load {
    /// Orders in a second
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    rate: f64,
    /// End after so many orders [default: 100]
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    count: Option<u64>,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS")]
    duration: Option<u64>,
    /// Parts of the kinds of orders: confirmed, declined, out_of_stock, cancelled
    #[arg(long, value_name = "KIND=PARTS,...", default_value = "confirmed=7,declined=1,out_of_stock=1,cancelled=1")]
    mix: Mix,
    /// Customers and goods that share the load; fewer make more of them wait for each other
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    customers: u32,
    /// Requests that are under way at most; when so many are, the rate falls behind
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    at_once: u32,
    /// How long to wait for the end of the last order, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// Where a service serves HTTP, when it is not a run of `dev`: orders=URL, payments=URL and inventory=URL
    #[arg(long = "url", value_name = "SERVICE=URL", value_parser = service_url)]
    urls: Vec<(String, String)>,
}

impl Load {
    /// Sends the orders and waits for their ends.
    ///
    /// # Errors
    /// When the mesh cannot be reached, or customers and goods cannot be made.
    pub async fn run(self, selection: &Selection, format: Format) -> anyhow::Result<Outcome> {
        let orders = self.orders()?;
        let target = selection.resolve()?;
        let broker = Broker::connect(&target, OPERATOR).await?;
        let urls: BTreeMap<String, String> = self.urls.iter().cloned().collect();
        let shop = if urls.is_empty() { Shop::of(target)? } else { Shop::among(urls)? };
        say(format_args!("making {} customers and goods for {orders} orders", self.customers));
        let goods = Goods::make(&shop, self.customers, orders).await?;
        // Before the first order, so that none of its facts is missed.
        let watched = Watched::begin(&broker).await?;
        let begun = Instant::now();
        let sending = send::Sending::begin(shop, goods, self.mix.clone(), self.pace(orders));
        self.until_sent(&sending, &watched, orders).await?;
        let sent_in = begun.elapsed();
        self.until_ended(&sending, &watched).await?;
        let report = Report::new(sending.sent(), sending.refused(), &watched.facts(), sent_in);
        format.print(&report)?;
        Ok(Outcome::from_answer(report.all_right()))
    }

    /// How many orders.
    fn orders(&self) -> anyhow::Result<u64> {
        if !self.rate.is_finite() || self.rate <= 0.0 || self.rate > 10_000.0 {
            return Err(Failure::usage("the rate is between 0 and 10000 orders a second"));
        }
        let in_time = self.duration.map(|seconds| (seconds as f64 * self.rate).round() as u64);
        let orders = in_time.or(self.count).unwrap_or(100);
        if orders == 0 || orders > ORDERS_MAX {
            return Err(Failure::usage(format!("that would be {orders} orders; a run has 1 to {ORDERS_MAX}")));
        }
        Ok(orders)
    }

    fn pace(&self, orders: u64) -> send::Pace {
        let every = Duration::from_secs_f64(1.0 / self.rate);
        send::Pace { orders, every, at_once: self.at_once as usize }
    }

    /// Until everything was sent, or somebody wants it to end.
    async fn until_sent(&self, sending: &send::Sending, watched: &Watched, orders: u64) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut live = Live::default();
        loop {
            tokio::select! {
                () = sending.finished() => return Ok(()),
                () = tokio::time::sleep(TOLD_EVERY) => {}
                interrupted = tokio::signal::ctrl_c() => {
                    interrupted?;
                    say("no more orders; waiting for the ends of those that were sent");
                    sending.stop();
                    sending.finished().await;
                    return Ok(());
                }
            }
            let (sent, refused) = (sending.sent().len(), sending.refused().len());
            let rate = sent as f64 / begun.elapsed().as_secs_f64();
            let ended = report::ended(&sending.sent(), &watched.facts());
            live.show(format_args!("sent {sent} of {orders} ({rate:.1}/s), {ended} ended, {refused} refused"));
        }
    }

    /// Until every order has ended, or time is up: what is missing then is told by the report.
    async fn until_ended(&self, sending: &send::Sending, watched: &Watched) -> anyhow::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(self.timeout);
        let mut live = Live::default();
        let sent = sending.sent();
        loop {
            let ended = report::ended(&sent, &watched.facts());
            watched.still_reading()?;
            if ended == sent.len() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let waited = duration(i64::try_from(self.timeout).unwrap_or(i64::MAX).saturating_mul(1_000));
                say(format_args!("{} orders have not ended after {waited}", sent.len() - ended));
                return Ok(());
            }
            live.show(format_args!("{ended} of {} ended", sent.len()));
            tokio::select! {
                () = tokio::time::sleep(TOLD_EVERY) => {}
                interrupted = tokio::signal::ctrl_c() => return interrupted.map_err(Into::into),
            }
        }
    }
}

fn service_url(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((service, url)) if !service.is_empty() && url.starts_with("http") => {
            Ok((service.to_owned(), url.trim_end_matches('/').to_owned()))
        }
        _ => Err(format!("{text:?} is not like orders=http://127.0.0.1:8081")),
    }
}

#[cfg(test)]
mod tests;
