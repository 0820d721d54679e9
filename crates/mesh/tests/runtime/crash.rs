//! A replica that can end in the middle of anything, as a process does on SIGKILL.

use mesh::Service;
use mesh::config::Config;
use mesh::testing::Running;
use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;

/// A service in a runtime of its own. When that goes, its tasks end wherever they are and its connections are closed.
pub(crate) struct Replica {
    runtime: Option<Runtime>,
    _running: Running,
}

impl Replica {
    pub(crate) async fn start(service: Service, config: Config) -> Self {
        let start = |runtime: &Runtime| runtime.block_on(Running::start(service, config));
        Self::start_with(start).await
    }

    pub(crate) async fn start_relay(service: Service, config: Config) -> Self {
        let start = |runtime: &Runtime| runtime.block_on(Running::start_relay(service, config));
        Self::start_with(start).await
    }

    async fn start_with(start: impl FnOnce(&Runtime) -> anyhow::Result<Running> + Send + 'static) -> Self {
        let started = spawn_blocking(|| {
            let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            let running = start(&runtime).unwrap();
            Self { runtime: Some(runtime), _running: running }
        });
        started.await.unwrap()
    }

    /// Ends it without a word.
    pub(crate) fn crash(self) {
        drop(self);
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
