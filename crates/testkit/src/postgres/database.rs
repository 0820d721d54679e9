//! Throwaway databases, cloned from templates on one server per test process.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::sync::OnceCell;

use super::{Postgres, PostgresOptions, quoted};
use crate::error::{Error, Result};

/// The server of this process. It ends with the process, and its data with it.
static SERVER: OnceCell<Postgres> = OnceCell::const_new();
/// The prepared templates by the caller's name for them.
static TEMPLATES: LazyLock<Mutex<HashMap<String, Arc<OnceCell<String>>>>> = LazyLock::new(Mutex::default);
/// Numbers the databases of this process.
static NEXT: AtomicU32 = AtomicU32::new(1);
/// Databases to drop. `Drop` cannot wait for a server, so a thread does.
static DROPPED: LazyLock<Sender<String>> = LazyLock::new(start_dropping);

/// A database of one test, gone when the value is dropped.
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
    url: String,
    pool: PgPool,
}

/// Makes a database that is a copy of `template`, which `prepare` fills once per test process: migrations, as a rule.
///
/// The name stands for what `prepare` does; two callers that do the same use the same name. The server is shared by the
/// tests of a process and runs without `fsync`, since nothing on it outlives the process; a test about durability
/// starts its own [`Postgres`].
///
/// ```no_run
/// # async fn example() -> testkit::Result<()> {
/// let database = testkit::database("orders", |url| async move {
///     let pool = sqlx::PgPool::connect(&url).await?;
///     sqlx::raw_sql("create table orders (order_id uuid primary key)").execute(&pool).await?;
///     pool.close().await;
///     Ok::<_, sqlx::Error>(())
/// })
/// .await?;
/// let rows: i64 = sqlx::query_scalar("select count(*) from orders").fetch_one(database.pool()).await.unwrap();
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`Postgres::start`], and [`Error::Prepare`].
pub async fn database<P, F, E>(template: &str, prepare: P) -> Result<TestDatabase>
where
    P: FnOnce(String) -> F,
    F: Future<Output = Result<(), E>>,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    let server = SERVER.get_or_try_init(|| Postgres::start(PostgresOptions::new().without_fsync())).await?;
    let cell = {
        let mut templates = TEMPLATES.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(templates.entry(template.to_owned()).or_default())
    };
    let source = cell.get_or_try_init(|| prepare_template(server, template, prepare)).await?;
    let name = next_name("test");
    // Without fsync copying files beats logging every page of them.
    let create = format!("create database {} template {} strategy file_copy", quoted(&name), quoted(source));
    server.execute(&create).await?;
    let url = server.url(&name);
    let options: PgConnectOptions = url.parse().map_err(Error::database("read a URL of the server"))?;
    let pool = PgPoolOptions::new().max_connections(10).connect_lazy_with(options);
    Ok(TestDatabase { name, url, pool })
}

impl TestDatabase {
    /// The URL for services and other processes.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The name of the database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A pool of up to ten connections, made when they are needed, for the runtime of the test.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // Best effort: what is left goes with the server.
        let _ = DROPPED.send(std::mem::take(&mut self.name));
    }
}

async fn prepare_template<P, F, E>(server: &Postgres, template: &str, prepare: P) -> Result<String>
where
    P: FnOnce(String) -> F,
    F: Future<Output = Result<(), E>>,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    let name = next_name("template");
    server.execute(&format!("create database {}", quoted(&name))).await?;
    if let Err(source) = prepare(server.url(&name)).await {
        let _ = DROPPED.send(name);
        return Err(Error::Prepare { template: template.to_owned(), source: source.into() });
    }
    // A template cannot be copied while somebody is connected, and pools end their sessions lazily.
    let closed = format!("alter database {} allow_connections false", quoted(&name));
    server.execute(&closed).await?;
    let rest = format!("select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '{name}'");
    server.execute(&rest).await?;
    Ok(name)
}

fn next_name(prefix: &str) -> String {
    format!("{prefix}_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn start_dropping() -> Sender<String> {
    let (sender, dropped) = mpsc::channel::<String>();
    let work = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        for name in dropped {
            if let Some(server) = SERVER.get() {
                let statement = format!("drop database if exists {} with (force)", quoted(&name));
                let _ = runtime.block_on(server.execute(&statement));
            }
        }
    };
    // Without the thread nothing is dropped before the server goes.
    let _ = std::thread::Builder::new().name("drop-databases".to_owned()).spawn(work);
    sender
}
