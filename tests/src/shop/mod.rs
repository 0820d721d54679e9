//! The shop as a whole: its servers, its service processes, and a client that remembers what it was told.
//!
//! ```no_run
//! # async fn example(bed: acceptance::shop::Bed) -> anyhow::Result<()> {
//! use acceptance::shop::{End, Shop};
//!
//! let shop = Shop::builder(bed, "example").start().await?;
//! let customer = shop.customer("EUR", 10_000).await?;
//! let mug = shop.stocked(5).await?;
//! let order = shop.place(customer, "EUR", &[(&mug, 1, 1_999)]).await?;
//! shop.ends(order, End::Confirmed).await?;
//! shop.finish().await // waits until nothing moves any more, and checks every promise
//! # }
//! ```

mod builder;
mod client;
mod forge;
mod load;
mod logs;
mod quiet;
mod replica;
mod servers;
mod trade;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail};
use testkit::Nats;

pub use builder::ShopBuilder;
pub use client::{Method, Reply, Request};
pub use forge::Forged;
pub use load::{Flow, Placed, Workload};
pub use replica::{Ended, Replica};
pub use servers::Servers;
pub use trade::{End, Line, order_request};

use crate::checker::{self, Evidence, Expected, Record, Report, Sources};
use logs::Logs;

/// What only the test binary knows: where Cargo has put things.
#[derive(Debug, Clone, Copy)]
pub struct Bed {
    /// The program `shop-under-test`.
    pub program: &'static str,
    /// A directory for what failed tests leave behind.
    pub directory: &'static str,
}

/// One of the three services with a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// Takes orders.
    Orders,
    /// Charges and refunds.
    Payments,
    /// Reserves and releases.
    Inventory,
}

impl Service {
    /// All of them.
    pub const ALL: [Service; 3] = [Service::Orders, Service::Payments, Service::Inventory];

    /// The name of the service: its first argument, its database, its NATS user.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Service::Orders => "orders",
            Service::Payments => "payments",
            Service::Inventory => "inventory",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A running shop. Dropping it ends everything.
#[derive(Debug)]
pub struct Shop {
    // Fields are dropped in this order: processes first, then what they run on.
    replicas: BTreeMap<Service, Vec<Replica>>,
    servers: Servers,
    http: reqwest::Client,
    record: Mutex<Record>,
    expected: Mutex<Expected>,
    names: AtomicU64,
    logs: Logs,
}

impl Shop {
    /// A shop to be started; `name` names the directory of its logs.
    #[must_use]
    pub fn builder(bed: Bed, name: impl Into<String>) -> ShopBuilder {
        ShopBuilder::new(bed, name)
    }

    /// The servers under the services.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// The nats-server.
    pub fn nats(&self) -> &Nats {
        &self.servers.nats
    }

    /// All replicas of a service.
    pub fn replicas(&self, service: Service) -> &[Replica] {
        self.replicas.get(&service).map_or(&[], Vec::as_slice)
    }

    /// The only replica of a service, or its first.
    pub fn replica(&self, service: Service) -> &Replica {
        // Every service was started with at least one.
        &self.replicas(service)[0]
    }

    /// Every replica of every service.
    pub fn all_replicas(&self) -> impl Iterator<Item = &Replica> {
        self.replicas.values().flatten()
    }

    /// Waits until every replica of every service is ready.
    ///
    /// # Errors
    /// When one is not in time.
    pub async fn ready(&self) -> Result<()> {
        for replica in self.all_replicas() {
            replica.ready().await?;
        }
        Ok(())
    }

    /// The numbers of all processes: the same as before when nobody had to restart one.
    ///
    /// # Errors
    /// When one does not run.
    pub async fn pids(&self) -> Result<Vec<u32>> {
        let mut pids = Vec::new();
        for replica in self.all_replicas() {
            pids.push(replica.process().await?.pid());
        }
        Ok(pids)
    }

    /// What clients were told so far.
    pub fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the run does to the stream on purpose.
    pub fn expected(&self) -> MutexGuard<'_, Expected> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that this shop has not given out yet: names of customers, SKUs and keys are made of it.
    pub fn next_number(&self) -> u64 {
        self.names.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits until nothing moves any more, and collects what is there.
    ///
    /// # Errors
    /// When it does not become quiet in time, or something cannot be read.
    pub async fn evidence(&self) -> Result<Evidence> {
        self.ready().await?;
        self.quiet().await?;
        let record = self.record().clone();
        checker::collect(&self.sources().await?, &record).await
    }

    /// Waits until nothing moves any more and checks every promise. The end of every test.
    ///
    /// # Errors
    /// When a promise is broken, with all that is wrong.
    pub async fn check(&self) -> Result<Report> {
        let evidence = self.evidence().await?;
        let (record, expected) = (self.record().clone(), self.expected().clone());
        let report = checker::check(&evidence, &record, &expected);
        if report.is_clean() { Ok(report) } else { bail!("promises are broken:\n{report}") }
    }

    /// [`check`](Shop::check), and forgets the logs when all is well.
    ///
    /// # Errors
    /// Those of [`check`](Shop::check).
    pub async fn finish(&self) -> Result<()> {
        let report = self.check().await?;
        println!("{}:\n{report}", self.logs.name());
        self.logs.forget_on_drop();
        Ok(())
    }

    async fn sources(&self) -> Result<Sources> {
        let mut http = BTreeMap::new();
        for service in Service::ALL {
            http.insert(service.name().to_owned(), format!("http://{}", self.replica(service).address().await?));
        }
        let databases = Service::ALL.map(|service| (service.name().to_owned(), self.servers.superuser_url(service)));
        Ok(Sources {
            databases: databases.into(),
            http,
            nats: self.servers.nats.admin().await?,
            catalogue: repository("events/catalogue"),
        })
    }
}

/// A path in the repository.
fn repository(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path)
}
