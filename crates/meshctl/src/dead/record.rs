//! `dead operations` and `dead operation`: what was done, by whom and why.

use clap::Args;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::broker::Broker;
use crate::operation::{self, Operation as Recorded};
use crate::outcome::Outcome;
use crate::output::Format;
use crate::{control, dev};

/// Whose.
#[derive(Debug, Clone, Args)]
pub struct Operations {
    /// The service; all of them without it
    service: Option<String>,
}

/// Which.
#[derive(Debug, Clone, Args)]
pub struct Operation {
    /// The service
    service: String,
    /// The operation
    operation_id: Uuid,
    /// End it where it is: what is not done yet is not done any more
    #[arg(long)]
    stop: bool,
    /// For whom it is recorded
    #[arg(long, value_name = "NAME", env = "USER", hide_env = true, default_value = "operator")]
    who: String,
}

/// The answer of a service. The members' outcomes are told one by one.
#[derive(Debug, Deserialize)]
struct List {
    service: String,
    operations: Vec<Listed>,
}

#[derive(Debug, Deserialize)]
struct Listed {
    operation_id: Uuid,
}

impl Operations {
    pub(super) async fn run(self, broker: &Broker, format: Format) -> anyhow::Result<Outcome> {
        let services =
            self.service.map_or_else(|| dev::WITH_DATABASE.map(str::to_owned).to_vec(), |service| vec![service]);
        let mut all = Vec::new();
        for service in services {
            let asked = control::ask::<List>(broker, &service, "operation.list").await;
            let list = asked.map_err(|error| error.during(format!("cannot ask {service} for its operations")))?;
            for Listed { operation_id } in list.operations {
                all.push(one(broker, &list.service, operation_id).await?);
            }
        }
        format.print(&operation::Operations(all))?;
        Ok(Outcome::Yes)
    }
}

impl Operation {
    pub(super) async fn run(self, broker: &Broker, format: Format) -> anyhow::Result<Outcome> {
        let recorded = if self.stop {
            let question = json!({ "operation_id": self.operation_id, "who": self.who });
            let asked = control::ask_for(broker, &self.service, "operation.stop", &question).await;
            asked.map_err(|error| error.during(format!("{} did not stop it", self.service)))?
        } else {
            one(broker, &self.service, self.operation_id).await?
        };
        format.print(&recorded)?;
        Ok(Outcome::from_answer(recorded.state == "running" || recorded.is_right()))
    }
}

async fn one(broker: &Broker, service: &str, operation_id: Uuid) -> anyhow::Result<Recorded> {
    let question = json!({ "operation_id": operation_id });
    let asked = control::ask_for(broker, service, "operation.show", &question).await;
    asked.map_err(|error| error.during(format!("cannot ask {service} for operation {operation_id}")))
}
