//! A whole mesh of child processes: servers, databases, services.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::future::{join_all, try_join_all};
use testkit::{ChildProcess, Nats, Postgres};

use super::home::Home;
use super::ports::Port;
use super::replica::{Plan, Replica};
use super::servers::nats_users;
use super::{SERVICES, WITH_DATABASE, binaries, demo_data};
use crate::broker::Broker;
use crate::declaration::{self, Declaration};
use crate::output::say;
use crate::permissions::OPERATOR;
use crate::shop::Shop;
use crate::streams;
use crate::target::{DevRecord, NatsRecord, Target};

/// How long one probe of a service may take.
const PROBE_WITHIN: Duration = Duration::from_secs(2);

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the data is kept; without it, it goes with the run.
    pub data: Option<PathBuf>,
    /// Where the logs of the services are.
    pub logs: PathBuf,
    /// Processes of each service.
    pub replicas: usize,
    /// The folder `nats/`.
    pub declaration: Option<PathBuf>,
    /// Whether to build the services first, where that is possible.
    pub build: bool,
    /// Whether to fill in customers and goods.
    pub demo_data: bool,
}

/// A running mesh. Dropping it ends all of it; so does the end of this process, however it comes.
#[derive(Debug)]
pub struct DevMesh {
    // The services are dropped before the servers that they talk to.
    replicas: Vec<Replica>,
    nats: Nats,
    postgres: Postgres,
    home: Home,
    operator_creds: PathBuf,
}

/// Processes that stand still.
#[derive(Debug)]
pub struct Held(Vec<Arc<ChildProcess>>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.iter().for_each(|process| process.cont());
    }
}

impl DevMesh {
    /// Starts everything and returns when every service is ready.
    ///
    /// # Errors
    /// When a server, a migration or a service does not come up; with what it said last.
    pub async fn start(options: &Options) -> anyhow::Result<Self> {
        let declaration = Declaration::load(&declaration::directory(options.declaration.as_deref())?)?;
        let programs = binaries::directory(&SERVICES, options.build).await?;
        let home = Home::open(options.data.as_deref(), &options.logs)?;
        say("starting nats-server and PostgreSQL");
        let (nats_options, postgres_options) = home.server_options()?;
        let (nats, postgres) = tokio::try_join!(
            Nats::start(nats_options.users(nats_users(&declaration.users))),
            Postgres::start(postgres_options),
        )?;
        let operator_creds = nats.creds_file(OPERATOR)?.to_owned();
        let mut mesh = Self { replicas: Vec::new(), nats, postgres, home, operator_creds };
        mesh.declare(&declaration).await?;
        mesh.start_services(&programs, options.replicas).await?;
        if options.demo_data {
            demo_data::fill(&Shop::of(mesh.target())?).await.context("cannot fill in the demo data")?;
        }
        Ok(mesh)
    }

    async fn declare(&self, declaration: &Declaration) -> anyhow::Result<()> {
        let operator = Broker::connect(&self.target(), OPERATOR).await?;
        let applied = streams::apply(&operator, declaration).await.context("cannot apply nats/")?;
        anyhow::ensure!(applied.applied, "the kept streams cannot become what nats/ declares:\n{applied}");
        Ok(())
    }

    async fn start_services(&mut self, programs: &Path, replicas: usize) -> anyhow::Result<()> {
        say(format_args!("starting {}", SERVICES.join(", ")));
        let plans = try_join_all(SERVICES.iter().map(|service| self.prepare(service, programs))).await?;
        let http = reqwest::Client::builder().timeout(PROBE_WITHIN).build().context("cannot make an HTTP client")?;
        let mut starts = Vec::new();
        for plan in plans {
            for index in 0..replicas {
                let port = Port::take(plan.service, index)?;
                starts.push(Plan { index, ..plan.clone() }.start(port, &http));
            }
        }
        self.replicas = try_join_all(starts).await?;
        Ok(())
    }

    /// Makes the database of a service that has one, and brings its tables up to date.
    async fn prepare(&self, service: &'static str, programs: &Path) -> anyhow::Result<Plan> {
        let mut plan = Plan {
            service,
            index: 0,
            executable: programs.join(service),
            database_url: None,
            nats_url: self.nats.url(),
            nats_creds: self.nats.creds_file(service)?.to_owned(),
            logs: self.home.logs().to_owned(),
            mails: self.home.mails(),
        };
        if WITH_DATABASE.contains(&service) {
            self.postgres.create_role_database(service, service).await?;
            plan.database_url = Some(self.postgres.url_for(service, service));
            plan.migrate().await?;
        }
        Ok(plan)
    }

    /// What `dev.json` says.
    pub fn record(&self) -> DevRecord {
        let mut services = BTreeMap::new();
        for replica in &self.replicas {
            services.entry(replica.service().to_owned()).or_insert_with(Vec::new).push(replica.record());
        }
        let nats = NatsRecord {
            url: self.nats.url(),
            monitor_url: self.nats.monitor_url(),
            operator_creds: self.operator_creds.clone(),
        };
        DevRecord { pid: std::process::id(), nats, services }
    }

    /// How verbs reach it.
    pub fn target(&self) -> Target {
        Target::of_run(self.record(), "the mesh of this run")
    }

    /// Makes all processes of a service stand still until the value is dropped. They keep their connections.
    pub fn hold(&self, service: &str) -> Held {
        let replicas = self.replicas.iter().filter(|replica| replica.service() == service);
        let processes: Vec<_> = replicas.map(Replica::process).collect();
        processes.iter().for_each(|process| process.stop());
        Held(processes)
    }

    /// The mails that customers were sent: one file for each fact.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn mails(&self) -> anyhow::Result<usize> {
        let files = std::fs::read_dir(self.home.mails()).context("cannot look at the mails")?;
        let is_mail = |file: &std::fs::DirEntry| file.path().extension().is_some_and(|extension| extension == "eml");
        Ok(files.flatten().filter(is_mail).count())
    }

    /// Where the logs are.
    pub fn logs(&self) -> PathBuf {
        self.home.logs().to_owned()
    }

    /// Starts again whatever ends, and tells `changed` about it. Never returns by itself.
    ///
    /// # Errors
    /// When something cannot be started again.
    pub async fn keep_alive(&self, changed: impl Fn() -> anyhow::Result<()> + Sync) -> anyhow::Result<()> {
        let services = try_join_all(self.replicas.iter().map(|replica| replica.keep_alive(&changed)));
        tokio::try_join!(services, self.keep_nats(), self.keep_postgres()).map(drop)
    }

    async fn keep_nats(&self) -> anyhow::Result<()> {
        loop {
            let status = self.nats.process().wait_exit(super::FOR_EVER).await?;
            say(format_args!("nats-server ended with {status}, starting it again"));
            self.nats.restart().await?;
        }
    }

    async fn keep_postgres(&self) -> anyhow::Result<()> {
        loop {
            let status = self.postgres.process().wait_exit(super::FOR_EVER).await?;
            say(format_args!("PostgreSQL ended with {status}, starting it again"));
            self.postgres.restart().await?;
        }
    }

    /// Ends it in order: services finish what is in flight, then the servers stop.
    ///
    /// # Errors
    /// When a server that keeps its data does not stop by itself; it is killed then.
    pub async fn stop(self) -> anyhow::Result<()> {
        join_all(self.replicas.iter().map(Replica::stop)).await;
        if self.home.keeps_data() {
            // What is not kept may be cut off.
            self.nats.term().await?;
            self.postgres.stop().await?;
        }
        Ok(())
    }
}
