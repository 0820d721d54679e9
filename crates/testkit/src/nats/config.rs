//! The configuration file of a server. The format of nats-server includes JSON.

use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::{Value, json};

use super::keys::Identity;

/// What is particular to one node.
pub(super) struct Node<'a> {
    pub(super) name: &'a str,
    pub(super) port: u16,
    pub(super) monitor_port: u16,
    pub(super) store: &'a Path,
    pub(super) default_sync: bool,
    pub(super) identities: &'a [Identity],
    pub(super) routes: Option<&'a Routes>,
}

/// How a node finds the others of its cluster.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    pub(super) port: u16,
    pub(super) peers: Vec<u16>,
}

impl Node<'_> {
    pub(super) fn render(&self) -> String {
        let host = Ipv4Addr::LOCALHOST;
        let mut config = json!({
            "server_name": self.name,
            "host": host,
            "port": self.port,
            "http": format!("{host}:{}", self.monitor_port),
            "jetstream": { "store_dir": self.store },
        });
        if !self.default_sync {
            config["jetstream"]["sync_interval"] = json!("always");
            // What a stream may ask for by `placement`.
            config["server_tags"] = json!(["sync:always"]);
        }
        if !self.identities.is_empty() {
            let users: Vec<Value> = self.identities.iter().map(Identity::entry).collect();
            config["authorization"] = json!({ "users": users });
        }
        if let Some(Routes { port, peers }) = self.routes {
            let routes: Vec<String> = peers.iter().map(|peer| format!("nats://{host}:{peer}")).collect();
            // Clients are not told of the other nodes: a proxy in front of one would be walked round.
            config["cluster"] =
                json!({ "name": "testkit", "host": host, "port": port, "routes": routes, "no_advertise": true });
        }
        format!("{config:#}\n")
    }
}
