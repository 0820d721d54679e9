//! How a shop is to be.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Result, bail};
use testkit::{ChildProcess, Program};

use super::logs::Logs;
use super::servers::Declarations;
use super::{Bed, Replica, Servers, Service, Shop};

/// How long migrations may take.
const MIGRATION_LIMIT: Duration = Duration::from_secs(60);
/// How long one request of a client may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// Longer than any fault of a test: no order is to be cancelled because a test is slow.
const FLOW_DEADLINE_SECONDS: &str = "3600";

/// A shop to be started.
#[derive(Debug)]
pub struct ShopBuilder {
    bed: Bed,
    name: String,
    replicas: usize,
    own_postgres: bool,
    linked: bool,
    declarations: Declarations,
    environment: Vec<(String, String)>,
}

impl ShopBuilder {
    pub(super) fn new(bed: Bed, name: impl Into<String>) -> ShopBuilder {
        ShopBuilder {
            bed,
            name: name.into(),
            replicas: 1,
            own_postgres: false,
            linked: false,
            declarations: Declarations::default(),
            environment: Vec::new(),
        }
    }

    /// Runs so many processes of each service.
    #[must_use]
    pub fn replicas(mut self, replicas: usize) -> ShopBuilder {
        self.replicas = replicas;
        self
    }

    /// Gives each service a PostgreSQL server of its own.
    #[must_use]
    pub fn own_postgres(mut self) -> ShopBuilder {
        self.own_postgres = true;
        self
    }

    /// Puts proxies between each service and its servers.
    #[must_use]
    pub fn linked(mut self) -> ShopBuilder {
        self.linked = true;
        self
    }

    /// Has the server deliver again what was not acknowledged for this long. Ten seconds is the least that services accept.
    #[must_use]
    pub fn ack_wait(mut self, ack_wait: Duration) -> ShopBuilder {
        self.declarations.ack_wait = Some(ack_wait);
        self
    }

    /// Has every service's durable hear these subjects as well.
    #[must_use]
    pub fn also_hear(mut self, subjects: impl IntoIterator<Item = &'static str>) -> ShopBuilder {
        self.declarations.also_hear.extend(subjects);
        self
    }

    /// Sets a variable of every service.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> ShopBuilder {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts everything and waits until every service is ready.
    ///
    /// # Errors
    /// When something does not start.
    pub async fn start(self) -> Result<Shop> {
        let logs = Logs::create(self.bed, &self.name)?;
        let servers = Servers::start(self.own_postgres, self.linked, &self.declarations).await?;
        let [orders, payments, inventory] = Service::ALL.map(|service| self.migrate(service, &servers, &logs));
        tokio::try_join!(orders, payments, inventory)?;
        let mut replicas = BTreeMap::new();
        for service in Service::ALL {
            let started: Result<Vec<Replica>> =
                (0..self.replicas).map(|index| self.replica(service, index, &servers, &logs)).collect();
            replicas.insert(service, started?);
        }
        let http = reqwest::Client::builder().timeout(REQUEST_LIMIT).build()?;
        let (record, expected) = (Mutex::default(), Mutex::default());
        let shop = Shop { replicas, servers, http, record, expected, names: AtomicU64::new(1), logs };
        shop.ready().await?;
        Ok(shop)
    }

    fn replica(&self, service: Service, index: usize, servers: &Servers, logs: &Logs) -> Result<Replica> {
        let name = format!("{service}-{index}");
        let log = logs.file(&name);
        let mut environment = servers.environment(service)?;
        let fixed = [
            ("MESH_LISTEN", "127.0.0.1:0"),
            ("MESH_LOG_FORMAT", "json"),
            ("ORDERS_FLOW_DEADLINE_SECONDS", FLOW_DEADLINE_SECONDS),
        ];
        environment.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
        environment.extend(self.environment.iter().cloned());
        Ok(Replica::start(service, name, PathBuf::from(self.bed.program), log, environment))
    }

    async fn migrate(&self, service: Service, servers: &Servers, logs: &Logs) -> Result<()> {
        let name = format!("{service}-migrate");
        let program = Program::new(&name, self.bed.program).args([service.name(), "migrate"]).clear_env();
        let variables = servers.environment(service)?;
        let database = variables.into_iter().filter(|(name, _)| name == "MESH_DATABASE_URL");
        let program = database.fold(program, |program, (name, value)| program.env(name, value));
        let migration = ChildProcess::spawn(program.log_to(logs.file(&name)))?;
        let status = migration.wait_exit(MIGRATION_LIMIT).await?;
        if !status.success() {
            bail!("the migrations of {service} ended with {status}: {}", migration.log_tail(20));
        }
        Ok(())
    }
}
