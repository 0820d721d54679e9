//! `dead redrive` and `dead discard`: shown, confirmed, done, followed.

use clap::Args;
use serde_json::json;

use super::preview::{Preview, Previews};
use super::select::{Filter, LetterName};
use crate::broker::Broker;
use crate::confirm::confirm;
use crate::control;
use crate::operation::{Operation, Operations, Order};
use crate::outcome::Outcome;
use crate::output::{Format, say};

/// What is recorded when no reason is given.
const NO_REASON: &str = "none given";

/// Which letters to run again, and how fast.
#[derive(Debug, Clone, Args)]
pub struct Redrive {
    #[command(flatten)]
    selection: Selection,
    /// Why, for the record
    #[arg(long, value_name = "TEXT", default_value = NO_REASON)]
    because: String,
    /// Letters per second, of each service
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rate: u16,
    #[command(flatten)]
    order: Order,
}

/// Which letters to give up for good.
#[derive(Debug, Clone, Args)]
pub struct Discard {
    #[command(flatten)]
    selection: Selection,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    because: String,
    #[command(flatten)]
    order: Order,
}

/// Letters by number or by what they have in common.
#[derive(Debug, Clone, Args)]
struct Selection {
    /// By service and number, e.g. payments/17
    letters: Vec<LetterName>,
    #[command(flatten)]
    filter: Filter,
    /// Every letter that waits
    #[arg(long, conflicts_with = "letters")]
    all: bool,
}

/// One of the two.
struct Action<'a> {
    verb: &'static str,
    because: &'a str,
    rate: Option<u16>,
    selection: &'a Selection,
    order: &'a Order,
}

impl Redrive {
    pub(super) async fn run(self, broker: &Broker, format: Format) -> anyhow::Result<Outcome> {
        let Self { selection, because, rate, order } = &self;
        Action { verb: "redrive", because, rate: Some(*rate), selection, order }.run(broker, format).await
    }
}

impl Discard {
    pub(super) async fn run(self, broker: &Broker, format: Format) -> anyhow::Result<Outcome> {
        let Self { selection, because, order } = &self;
        Action { verb: "discard", because, rate: None, selection, order }.run(broker, format).await
    }
}

impl Action<'_> {
    async fn run(&self, broker: &Broker, format: Format) -> anyhow::Result<Outcome> {
        let mut done = Vec::new();
        let mut previews = Vec::new();
        for (service, filter) in self.selection.filter.by_service(&self.selection.letters, self.selection.all)? {
            if let Some(earlier) = self.order.earlier(broker, &service).await? {
                done.push(earlier);
                continue;
            }
            let question = json!({ "action": self.verb, "filter": filter });
            let asked = control::ask_for::<Preview>(broker, &service, "dead.preview", &question).await;
            previews.push(asked.map_err(|error| error.during(format!("cannot ask {service} what it would do")))?);
        }
        let previews = Previews(previews);
        if self.order.dry_run {
            format.print(&previews)?;
            return Ok(Outcome::Yes);
        }
        let count: u64 = previews.0.iter().map(|preview| preview.eligible).sum();
        let refused: u64 = previews.0.iter().map(Preview::refused).sum();
        if count + refused > 0 {
            say(previews.to_string().trim_end());
        }
        if count > 0 && !confirm(&format!("{} {count} letters", self.verb), count, self.order.yes)? {
            say("nothing was done");
            return Ok(Outcome::No);
        }
        for preview in &previews.0 {
            done.extend(self.begin(broker, preview).await?);
        }
        let mut ended = Vec::new();
        for operation in done {
            ended.push(operation.followed(broker).await?);
        }
        let ended = Operations(ended);
        format.print(&ended)?;
        Ok(Outcome::from_answer(ended.are_right() && refused == 0))
    }

    async fn begin(&self, broker: &Broker, preview: &Preview) -> anyhow::Result<Option<Operation>> {
        let Some(token) = preview.token else { return Ok(None) };
        let mut request = self.order.request(token, self.because);
        request["rate_per_second"] = json!(self.rate);
        let verb = format!("dead.{}", self.verb);
        let asked = control::ask_for(broker, &preview.service, &verb, &request).await;
        asked.map(Some).map_err(|error| error.during(format!("{} did not {}", preview.service, self.verb)))
    }
}
