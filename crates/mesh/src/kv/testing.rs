//! A whole service without a database inside the process of a test.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{KvService, process};
use crate::config::ProcessConfig;
use crate::context::ServiceContext;
use crate::lifecycle::Lifecycle;

/// A running service without a database. No signals, no logs of its own.
#[derive(Debug)]
pub struct RunningKv {
    lifecycle: Lifecycle,
    address: SocketAddr,
    drain: Duration,
}

impl RunningKv {
    /// Starts `service` as its process would, against the real server that `config` names. Use port 0.
    ///
    /// # Errors
    /// What would end the process at its start.
    pub async fn start(service: KvService, config: ProcessConfig) -> anyhow::Result<Self> {
        let context = ServiceContext::new(service.name, service.build, Arc::clone(&service.clock));
        let lifecycle = Lifecycle::new();
        let address = process::start(service, &config, context, &lifecycle).await?;
        Ok(Self { lifecycle, address, drain: config.drain })
    }

    /// Where HTTP is served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Drains, as after SIGTERM.
    ///
    /// # Errors
    /// When something had to be cut off.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.lifecycle.drain(self.drain).await?;
        Ok(())
    }
}
