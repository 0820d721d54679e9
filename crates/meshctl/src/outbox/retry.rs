//! `outbox retry`: facts that were given up, back on their way.

use std::fmt;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::broker::Broker;
use crate::confirm::confirm;
use crate::operation::{Operation, Operations, Order};
use crate::outcome::{Failure, Outcome};
use crate::output::{Format, say};
use crate::{control, dev};

/// Which facts.
#[derive(Debug, Clone, Args)]
pub struct Retry {
    /// The fact
    event_id: Option<Uuid>,
    /// Of this key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Of this type, with its major
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Of this service
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Everything that was given up
    #[arg(long)]
    all: bool,
    /// Why, for the record
    #[arg(long, value_name = "TEXT", default_value = "none given")]
    because: String,
    #[command(flatten)]
    order: Order,
}

/// What a service would put back.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Preview {
    service: String,
    token: Option<Uuid>,
    eligible: u64,
    included: u64,
    more: bool,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Previews(Vec<Preview>);

impl Retry {
    pub(super) async fn run(self, broker: &Broker, format: Format) -> anyhow::Result<Outcome> {
        let (previews, mut done) = self.look(broker).await?;
        if self.order.dry_run {
            format.print(&previews)?;
            return Ok(Outcome::Yes);
        }
        let count: u64 = previews.0.iter().map(|preview| preview.eligible).sum();
        if count > 0 {
            say(previews.to_string().trim_end());
            if !confirm(&format!("retry {count} facts"), count, self.order.yes)? {
                say("nothing was done");
                return Ok(Outcome::No);
            }
        }
        for Preview { service, token, .. } in &previews.0 {
            let Some(token) = token else { continue };
            let request = self.order.request(*token, &self.because);
            let asked = control::ask_for(broker, service, "outbox.retry", &request).await;
            done.push(asked.map_err(|error| error.during(format!("{service} did not put them back")))?);
        }
        let done = Operations(done);
        format.print(&done)?;
        Ok(Outcome::from_answer(done.are_right()))
    }

    /// What would be put back, and what was by this operation before.
    async fn look(&self, broker: &Broker) -> anyhow::Result<(Previews, Vec<Operation>)> {
        let narrowed = self.event_id.is_some() || self.key.is_some() || self.event_type.is_some();
        if !narrowed && self.service.is_none() && !self.all {
            return Err(Failure::usage("which facts? Name one, a key, a type or a service, or say --all"));
        }
        let question = json!({ "event_id": self.event_id, "key": self.key, "event_type": self.event_type });
        let named = |service: &String| vec![service.clone()];
        let services = self.service.as_ref().map_or_else(|| dev::WITH_DATABASE.map(str::to_owned).to_vec(), named);
        let (mut previews, mut done) = (Vec::new(), Vec::new());
        for service in services {
            if let Some(earlier) = self.order.earlier(broker, &service).await? {
                done.push(earlier);
                continue;
            }
            let asked = control::ask_for(broker, &service, "outbox.preview", &question).await;
            previews.push(asked.map_err(|error| error.during(format!("cannot ask {service} what it would do")))?);
        }
        Ok((Previews(previews), done))
    }
}

impl fmt::Display for Previews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Preview { service, eligible, included, more, .. } in &self.0 {
            writeln!(f, "{service}: {eligible} to put back")?;
            if *included > 0 {
                writeln!(f, "  {included} of them before those in their keys")?;
            }
            if *more {
                writeln!(f, "  there are more than one retry takes: repeat it afterwards")?;
            }
        }
        Ok(())
    }
}
