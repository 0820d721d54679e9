//! The configuration file of a server. The format of nats-server includes JSON.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::keys::Identity;
use super::launcher::Launcher;
use crate::port::Port;

/// How a node finds the others of its cluster.
#[derive(Debug)]
pub(super) struct Routes {
    pub(super) port: Port,
    pub(super) peers: Vec<u16>,
}

pub(super) fn render(node: &Launcher) -> String {
    let host = Ipv4Addr::LOCALHOST;
    let mut config = json!({
        "server_name": node.name,
        "host": host,
        "port": node.port.number(),
        "http": node.monitor_port.address(),
        "jetstream": { "store_dir": node.store() },
    });
    if !node.default_sync {
        config["jetstream"]["sync_interval"] = json!("always");
        // What a stream may ask for by `placement`.
        config["server_tags"] = json!(["sync:always"]);
    }
    if !node.identities.is_empty() {
        let users: Vec<Value> = node.identities.iter().map(Identity::entry).collect();
        config["authorization"] = json!({ "users": users });
    }
    if let Some(Routes { port, peers }) = &node.routes {
        let routes: Vec<String> = peers.iter().map(|peer| format!("nats://{host}:{peer}")).collect();
        config["cluster"] = json!({
            "name": "testkit",
            "host": host,
            "port": port.number(),
            "routes": routes,
            // Clients are not told of the other nodes: a proxy in front of one would be walked round.
            "no_advertise": true,
        });
    }
    format!("{config:#}\n")
}
