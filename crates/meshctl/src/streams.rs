//! `streams`: makes the server what `nats/` declares, and tells where it is not.

pub mod plan;
mod rules;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};

pub use plan::{Action, AssetKind, AssetPlan, Live, Plan};
pub use rules::Verdict;

use crate::broker::{Broker, RequestError};
use crate::declaration::{self, Config, Declaration};
use crate::outcome::Outcome;
use crate::output::Format;
use crate::permissions::OPERATOR;
use crate::target::Target;

/// What to do with stream, buckets and consumers.
#[derive(Debug, Clone, Subcommand)]
pub enum Verb {
    /// What `apply` would change, field by field; ends with 1 when it would refuse
    Plan(Folder),
    /// Creates and updates; never deletes, and refuses what would lose facts or positions
    Apply(Folder),
    /// What differs; ends with 1 when anything does
    Diff(Folder),
}

/// Where the declaration is.
#[derive(Debug, Clone, Default, Args)]
pub struct Folder {
    /// The folder with stream.json, buckets/, consumers/ and users.json [default: nats]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// What `apply` did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Applied {
    /// Whether everything was done; when anything is refused, nothing is done.
    pub applied: bool,
    /// What there was to do.
    #[serde(flatten)]
    pub plan: Plan,
}

/// Runs the verb.
///
/// # Errors
/// When the declaration or the server cannot be read, or the server refuses.
pub async fn run(verb: Verb, target: &Target, format: Format) -> anyhow::Result<Outcome> {
    let (Verb::Plan(Folder { dir }) | Verb::Apply(Folder { dir }) | Verb::Diff(Folder { dir })) = &verb;
    let declaration = load(dir.as_deref())?;
    let broker = Broker::connect(target, OPERATOR).await?;
    match verb {
        Verb::Plan(_) => {
            let plan = plan(&broker, &declaration).await?;
            format.print(&plan)?;
            Ok(Outcome::from_answer(plan.refused().next().is_none()))
        }
        Verb::Diff(_) => {
            let plan = plan(&broker, &declaration).await?;
            format.print(&plan)?;
            Ok(Outcome::from_answer(plan.is_empty()))
        }
        Verb::Apply(_) => {
            let applied = apply(&broker, &declaration).await?;
            format.print(&applied)?;
            Ok(Outcome::from_answer(applied.applied))
        }
    }
}

/// Reads the declaration from the chosen folder, or from where it usually is.
///
/// # Errors
/// A usage error when it is not there or malformed.
pub fn load(directory: Option<&Path>) -> anyhow::Result<Declaration> {
    Declaration::load(&declaration::directory(directory)?)
}

/// Compares the declaration with the server.
///
/// # Errors
/// When the server cannot be asked.
pub async fn plan(broker: &Broker, declaration: &Declaration) -> anyhow::Result<Plan> {
    Ok(Plan::new(declaration, &live(broker, declaration).await?))
}

/// Makes the server what is declared, or does nothing when a part of it would lose something.
///
/// # Errors
/// When the server refuses, or is not as declared afterwards.
pub async fn apply(broker: &Broker, declaration: &Declaration) -> anyhow::Result<Applied> {
    let plan = plan(broker, declaration).await?;
    if plan.refused().next().is_some() {
        return Ok(Applied { applied: false, plan });
    }
    let stream = declaration.stream_name();
    for asset in plan.assets.iter().filter(|asset| asset.action != Action::None) {
        let done = match asset.kind {
            AssetKind::Stream => {
                let config = declaration.side_streams.get(&asset.name).unwrap_or(&declaration.stream);
                apply_stream(broker, asset, &asset.name, config).await
            }
            AssetKind::Bucket => {
                let stream = format!("KV_{}", asset.name);
                apply_stream(broker, asset, &stream, &declaration.buckets[&asset.name]).await
            }
            AssetKind::Consumer => apply_consumer(broker, stream, asset, &declaration.consumers[&asset.name]).await,
        };
        done.map_err(|error| error.during(asset))?;
    }
    let left = self::plan(broker, declaration).await?;
    if left.changes_anything() {
        bail!("the server accepted everything and still differs:\n{left}");
    }
    Ok(Applied { applied: true, plan })
}

async fn apply_stream(
    broker: &Broker,
    asset: &AssetPlan,
    stream: &str,
    config: &Config,
) -> Result<Value, RequestError> {
    let verb = if asset.action == Action::Create { "CREATE" } else { "UPDATE" };
    broker.api(&format!("STREAM.{verb}.{stream}"), config).await
}

async fn apply_consumer(
    broker: &Broker,
    stream: &str,
    asset: &AssetPlan,
    config: &Config,
) -> Result<Value, RequestError> {
    // Without the word the server would take either for the other.
    let action = if asset.action == Action::Create { "create" } else { "update" };
    let request = json!({ "stream_name": stream, "config": config, "action": action });
    broker.api(&format!("CONSUMER.CREATE.{stream}.{}", asset.name), &request).await
}

/// What is on the server.
///
/// # Errors
/// When it cannot be asked.
pub async fn live(broker: &Broker, declaration: &Declaration) -> anyhow::Result<Live> {
    let stream = declaration.stream_name();
    let mut live = Live { stream: live_stream(broker, stream).await?, ..Live::default() };
    for name in declaration.side_streams.keys() {
        let config = live_stream(broker, name).await?;
        live.side_streams.extend(config.map(|config| (name.clone(), config)));
    }
    for name in declaration.buckets.keys() {
        let config = live_stream(broker, &format!("KV_{name}")).await?;
        live.buckets.extend(config.map(|config| (name.clone(), config)));
    }
    if live.stream.is_none() {
        return Ok(live);
    }
    for consumer in consumers(broker, stream).await? {
        // One without a durable name is somebody's passing glance: a reader of ours, an observer.
        if let (Some(name), Some(config)) =
            (consumer["config"]["durable_name"].as_str(), consumer["config"].as_object())
        {
            live.consumers.insert(name.to_owned(), config.clone());
        }
    }
    Ok(live)
}

/// The configuration of a stream, if there is one.
async fn live_stream(broker: &Broker, name: &str) -> anyhow::Result<Option<Config>> {
    match broker.api(&format!("STREAM.INFO.{name}"), &json!({})).await {
        Ok(info) => Ok(info["config"].as_object().cloned()),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.during(format!("cannot look at the stream {name}"))),
    }
}

/// What the server knows about each consumer of the stream, ephemeral ones included.
///
/// # Errors
/// When it cannot be asked.
pub async fn consumers(broker: &Broker, stream: &str) -> anyhow::Result<Vec<Value>> {
    let mut consumers = Vec::new();
    loop {
        let page = broker.api(&format!("CONSUMER.LIST.{stream}"), &json!({ "offset": consumers.len() })).await;
        let page = page.map_err(|error| error.during(format!("cannot list the consumers of {stream}")))?;
        let items = page["consumers"].as_array().cloned().unwrap_or_default();
        let total = page["total"].as_u64().and_then(|total| usize::try_from(total).ok()).unwrap_or_default();
        let last_page = items.is_empty();
        consumers.extend(items);
        if last_page || consumers.len() >= total {
            return Ok(consumers);
        }
    }
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.plan)?;
        match (self.applied, self.plan.changes_anything()) {
            (false, _) => writeln!(f, "nothing was changed, because a part of it is refused"),
            (true, false) => writeln!(f, "nothing to do"),
            (true, true) => writeln!(f, "done"),
        }
    }
}

#[cfg(test)]
mod tests;
