//! The wire between a subscriber and its database: it reads along, and fails a statement that has run.
//!
//! A statement that is failed here has had its effect inside the transaction, and the server knows of no error. That is
//! the hardest case for a handler: nothing but its own answer keeps the transaction from being committed.

mod frames;
mod plan;
mod session;

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use plan::Plan;

/// What happens to a statement after it has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The client is told that it failed.
    Error,
    /// The connection ends.
    Cut,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "with an error",
            Self::Cut => "with its connection",
        })
    }
}

/// A listener in front of the database, and a pool that goes through it.
pub(super) struct Wire {
    pool: PgPool,
    plan: SharedPlan,
    listening: AbortHandle,
}

/// The plan, shared by the connections.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedPlan(Arc<Mutex<Plan>>);

impl SharedPlan {
    fn lock(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wire {
    /// Listens in front of the database that `options` reach, which has to be over TCP and without TLS.
    pub(super) async fn open(options: &PgConnectOptions) -> io::Result<Self> {
        if options.get_socket().is_some() {
            return Err(io::Error::other("the database is behind a Unix socket; the suite takes TCP"));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let plan = SharedPlan::default();
        let upstream = (options.get_host().to_owned(), options.get_port());
        let listening = tokio::spawn(listen(listener, upstream, plan.clone())).abort_handle();
        let options = options.clone().host("127.0.0.1").port(port).ssl_mode(PgSslMode::Disable);
        Ok(Self { pool: PgPoolOptions::new().max_connections(4).connect_lazy_with(options), plan, listening })
    }

    /// Connections through the wire.
    pub(super) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Writes down the statements of the next transaction.
    pub(super) fn watch(&self) {
        *self.plan.lock() = Plan::default();
    }

    /// Fails statement `number` of the next transaction, counted from 1 after its begin.
    pub(super) fn arm(&self, number: usize, fault: Fault) {
        *self.plan.lock() = Plan::armed(number, fault);
    }

    /// The statements since [`Wire::watch`], after the begin.
    pub(super) fn take_statements(&self) -> Vec<String> {
        std::mem::take(&mut *self.plan.lock()).statements
    }

    /// The statement that was failed since [`Wire::arm`].
    pub(super) fn take_fired(&self) -> Option<String> {
        std::mem::take(&mut *self.plan.lock()).fired
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, upstream: (String, u16), plan: SharedPlan) {
    // The connections end with the listener.
    let mut sessions = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let (upstream, plan) = (upstream.clone(), plan.clone());
        sessions.spawn(async move {
            if let Err(error) = session::run(client, &upstream, plan).await {
                tracing::debug!(%error, "a connection of the conformance suite ended");
            }
        });
    }
}
