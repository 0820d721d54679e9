//! Three nats-servers that replicate to each other.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::config::Routes;
use super::{Launcher, Nats, NatsOptions, apply, keys, program};
use crate::error::{Error, Result};
use crate::port::Port;
use crate::scratch::Home;
use crate::wait;

/// How long a cluster may take to elect a leader of its metadata and to have everybody follow it.
const QUORUM_LIMIT: Duration = Duration::from_secs(60);

/// A cluster of nats-servers on 127.0.0.1 with the same users. Each node can be stopped, killed and restarted.
///
/// ```no_run
/// # async fn example() -> testkit::Result<()> {
/// use testkit::{NatsCluster, NatsOptions};
///
/// let cluster = NatsCluster::start(3, NatsOptions::new()).await?;
/// cluster.apply("nats").await?; // with three replicas
/// cluster.node(0).kill9().await;
/// cluster.node(0).restart().await?;
/// cluster.ready().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct NatsCluster {
    nodes: Vec<Nats>,
}

impl NatsCluster {
    /// Starts `size` nodes and waits until streams with as many replicas can be created.
    ///
    /// # Errors
    /// Those of [`Nats::start`].
    pub async fn start(size: usize, options: NatsOptions) -> Result<NatsCluster> {
        let program = program(&options).await?;
        let ports = (0..size).map(|_| Port::reserve()).collect::<Result<Vec<Port>>>()?;
        let peers: Vec<u16> = ports.iter().map(Port::number).collect();
        let mut nodes: Vec<Nats> = Vec::with_capacity(size);
        for (index, port) in ports.into_iter().enumerate() {
            let name = format!("nats-{index}");
            let given = options.home.as_ref().map(|home| home.join(&name));
            let home = Home::open(given.as_deref(), &name)?;
            // A user is the same on every node: the first keeps the keys.
            let identities = match nodes.first() {
                Some(first) => first.launcher.identities.clone(),
                None => keys::identities(&options.users, &home.path().join("keys"))?,
            };
            let launcher = Launcher {
                name,
                program: program.clone(),
                port: Port::reserve()?,
                monitor_port: Port::reserve()?,
                routes: Some(Routes { port, peers: peers.clone() }),
                identities,
                default_sync: options.default_sync,
                home,
            };
            // Nobody is ready before there are enough of them.
            let server = Mutex::new(Arc::new(launcher.spawn()?));
            nodes.push(Nats { server, launcher });
        }
        let cluster = NatsCluster { nodes };
        cluster.ready().await?;
        Ok(cluster)
    }

    /// Waits until every node that runs answers, they agree on a leader of the metadata, and all of them follow it.
    ///
    /// # Errors
    /// [`Error::TimedOut`](crate::Error::TimedOut) with what was missing.
    pub async fn ready(&self) -> Result<()> {
        let running = || self.nodes.iter().filter(|node| node.process().is_running());
        for node in running() {
            node.launcher.ready(&node.process()).await?;
        }
        let awaited = format!("{} nodes that follow one leader", running().count());
        wait::until(&awaited, QUORUM_LIMIT, || async {
            let mut leaders = Vec::new();
            for node in running() {
                let state = node.monitor("/jsz").await.map_err(|error| format!("{}: {error:?}", node.launcher.name))?;
                leaders.push(state["meta_cluster"]["leader"].as_str().unwrap_or("nobody").to_owned());
            }
            let leader = leaders.first().cloned().unwrap_or_default();
            if leader == "nobody" || leaders.iter().any(|other| *other != leader) {
                return Err(format!("the nodes name as leader: {}", leaders.join(", ")));
            }
            let behind = self.behind(&leader).await?;
            if behind.is_empty() { Ok(()) } else { Err(format!("{} have not caught up", behind.join(", "))) }
        })
        .await?;
        Ok(())
    }

    /// The nodes that run and have not caught up with the leader of the metadata, by its own account.
    async fn behind(&self, leader: &str) -> Result<Vec<&str>, String> {
        let node = self.nodes.iter().find(|node| node.launcher.name == leader);
        let node = node.ok_or_else(|| format!("{leader} leads and is not of this cluster"))?;
        let state = node.monitor("/jsz").await.map_err(|error| format!("{error:?}"))?;
        let replicas = state["meta_cluster"]["replicas"].as_array().cloned().unwrap_or_default();
        let follows = |name: &str| {
            let replica = replicas.iter().find(|replica| replica["name"] == name);
            replica.is_some_and(|replica| replica["current"] == true && replica["offline"] != true)
        };
        let running = self.nodes.iter().filter(|node| node.process().is_running());
        let names = running.map(|node| &node.launcher.name[..]);
        Ok(names.filter(|name| *name != leader && !follows(name)).collect())
    }

    /// One node, from 0.
    ///
    /// # Panics
    /// When there is no such node.
    pub fn node(&self, index: usize) -> &Nats {
        &self.nodes[index]
    }

    /// All nodes.
    pub fn nodes(&self) -> &[Nats] {
        &self.nodes
    }

    /// The node that leads the metadata, and its number; `None` during an election.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) when no running node answers.
    pub async fn meta_leader(&self) -> Result<Option<usize>> {
        self.leader_in("/jsz", |state| state["meta_cluster"]["leader"].as_str().map(str::to_owned)).await
    }

    /// The number of the node that leads a stream; `None` during an election.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) when no running node answers.
    pub async fn stream_leader(&self, stream: &str) -> Result<Option<usize>> {
        self.leader_in("/jsz?streams=true", |state| {
            let accounts = state["account_details"].as_array()?;
            let mut streams = accounts.iter().flat_map(|account| account["stream_detail"].as_array()).flatten();
            let found = streams.find(|detail| detail["name"] == stream)?;
            found["cluster"]["leader"].as_str().map(str::to_owned)
        })
        .await
    }

    async fn leader_in(
        &self,
        path: &str,
        leader: impl Fn(&serde_json::Value) -> Option<String>,
    ) -> Result<Option<usize>> {
        for node in self.nodes.iter().filter(|node| node.process().is_running()) {
            if let Some(name) = leader(&node.monitor(path).await?) {
                return Ok(self.nodes.iter().position(|node| node.launcher.name == name));
            }
        }
        Ok(None)
    }

    /// The URLs of all nodes, joined by commas, as clients take them.
    pub fn url(&self) -> String {
        self.nodes.iter().map(Nats::url).collect::<Vec<_>>().join(",")
    }

    /// Creates the stream and the consumers of a directory, as [`Nats::apply`] does, with a copy on every node. Returns when
    /// they can be reached through each node that runs.
    ///
    /// # Errors
    /// [`Error::JetStream`](crate::Error::JetStream) with the server's reason.
    pub async fn apply(&self, directory: impl AsRef<Path>) -> Result<()> {
        let mut clients = Vec::new();
        for node in self.nodes.iter().filter(|node| node.process().is_running()) {
            clients.push(node.admin().await?);
        }
        let Some(first) = clients.first() else {
            return Err(Error::Unusable("no node of the cluster runs".to_owned()));
        };
        let applied = apply::apply(first, directory.as_ref(), self.nodes.len()).await?;
        for client in &clients {
            wait::until("the stream to be reachable", QUORUM_LIMIT, || applied.reachable_from(client)).await?;
        }
        Ok(())
    }
}
