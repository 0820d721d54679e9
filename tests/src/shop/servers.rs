//! PostgreSQL and NATS under a shop, and the links to them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use testkit::{Nats, NatsOptions, NatsUser, Postgres, PostgresOptions, Proxy};
use uuid::Uuid;

use super::{Service, repository};

/// What is changed in the declarations of `nats/` before they are applied.
#[derive(Debug, Clone, Default)]
pub(super) struct Declarations {
    /// Instead of the declared `ack_wait` of every durable.
    pub(super) ack_wait: Option<Duration>,
    /// More subjects that every durable hears.
    pub(super) also_hear: Vec<&'static str>,
}

/// The servers of one shop.
#[derive(Debug)]
pub struct Servers {
    /// The nats-server, with one user for each service as `nats/users.json` declares them.
    pub nats: Nats,
    postgres: BTreeMap<Service, Arc<Postgres>>,
    links: BTreeMap<Service, Links>,
}

/// Proxies between one service and its servers.
#[derive(Debug)]
pub struct Links {
    /// To the database.
    pub database: Proxy,
    /// To NATS.
    pub nats: Proxy,
}

impl Servers {
    /// Starts one PostgreSQL for all services or one for each, and NATS; makes databases, roles, stream and durables.
    pub(super) async fn start(own_postgres: bool, linked: bool, declarations: &Declarations) -> Result<Servers> {
        let (postgres, nats) = tokio::try_join!(databases(own_postgres), broker(declarations))?;
        let mut links = BTreeMap::new();
        for service in Service::ALL.into_iter().filter(|_| linked) {
            let database = Proxy::start(address_of(&postgres, service)?).await?;
            links.insert(service, Links { database, nats: Proxy::start(nats.address()).await? });
        }
        Ok(Servers { nats, postgres, links })
    }

    /// The PostgreSQL server of a service.
    ///
    /// # Errors
    /// Never for a service of the shop.
    pub fn postgres(&self, service: Service) -> Result<&Postgres> {
        self.postgres.get(&service).map(|postgres| &**postgres).ok_or_else(|| anyhow!("{service} has no database"))
    }

    /// The links of a service, when the shop was built with them.
    ///
    /// # Errors
    /// When it was not.
    pub fn links(&self, service: Service) -> Result<&Links> {
        self.links.get(&service).ok_or_else(|| anyhow!("the shop of this test was built without links"))
    }

    /// The database of a service for a role that may do everything.
    #[must_use]
    pub fn superuser_url(&self, service: Service) -> String {
        self.postgres.get(&service).map(|postgres| postgres.url(service.name())).unwrap_or_default()
    }

    /// Asks the database of a service for one value.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn count(&self, service: Service, sql: &'static str) -> Result<i64> {
        let mut database = PgConnection::connect(&self.superuser_url(service)).await?;
        let count = sqlx::query_scalar(sql).fetch_one(&mut database).await?;
        database.close().await?;
        Ok(count)
    }

    /// The facts that a service has committed and not sent.
    ///
    /// # Errors
    /// When its database does not answer.
    pub async fn unsent(&self, service: Service) -> Result<BTreeSet<Uuid>> {
        let mut database = PgConnection::connect(&self.superuser_url(service)).await?;
        let ids: Vec<Uuid> = sqlx::query_scalar("select event_id from mesh.outbox").fetch_all(&mut database).await?;
        database.close().await?;
        Ok(ids.into_iter().collect())
    }

    /// What a service is told about its servers.
    pub(super) fn environment(&self, service: Service) -> Result<Vec<(String, String)>> {
        let name = service.name();
        let mut database_url = self.postgres(service)?.url_for(name, name);
        let mut nats_url = self.nats.url();
        if let Some(links) = self.links.get(&service) {
            database_url = links.database.through(&database_url);
            nats_url = links.nats.through(&nats_url);
        }
        let creds = self.nats.creds_file(name)?.display().to_string();
        let variables = [("MESH_DATABASE_URL", database_url), ("MESH_NATS_URL", nats_url), ("MESH_NATS_CREDS", creds)];
        Ok(variables.map(|(name, value)| (name.to_owned(), value)).into())
    }
}

fn address_of(postgres: &BTreeMap<Service, Arc<Postgres>>, service: Service) -> Result<std::net::SocketAddr> {
    postgres.get(&service).map(|postgres| postgres.address()).ok_or_else(|| anyhow!("{service} has no database"))
}

async fn databases(own: bool) -> Result<BTreeMap<Service, Arc<Postgres>>> {
    let mut servers: BTreeMap<Service, Arc<Postgres>> = BTreeMap::new();
    for service in Service::ALL {
        let first = servers.values().next().cloned().filter(|_| !own);
        let server = match first {
            Some(server) => server,
            None => Arc::new(Postgres::start(PostgresOptions::new().without_fsync()).await?),
        };
        server.create_role_database(service.name(), service.name()).await?;
        servers.insert(service, server);
    }
    Ok(servers)
}

async fn broker(declarations: &Declarations) -> Result<Nats> {
    let nats = Nats::start(NatsOptions::new().users(users()?)).await?;
    let directory = testkit::scratch::dir("nats-declarations")?;
    declare(directory.path(), declarations)?;
    nats.apply(directory.path()).await?;
    Ok(nats)
}

/// The users of `nats/users.json`, with what each may do.
fn users() -> Result<Vec<NatsUser>> {
    let declared = read(&repository("nats/users.json"))?;
    let subjects = |value: &Value| -> Vec<String> {
        let subjects = value["allow"].as_array().map(Vec::as_slice).unwrap_or_default();
        subjects.iter().filter_map(|subject| subject.as_str().map(str::to_owned)).collect()
    };
    let users = declared["users"].as_array().ok_or_else(|| anyhow!("nats/users.json has no users"))?;
    users
        .iter()
        .map(|declared| {
            let name = declared["name"].as_str().ok_or_else(|| anyhow!("a user without a name: {declared}"))?;
            let permissions = &declared["permissions"];
            let mut user = NatsUser::new(name)
                .publish(subjects(&permissions["publish"]))
                .subscribe(subjects(&permissions["subscribe"]));
            if let Some(prefix) = declared["inbox_prefix"].as_str() {
                user = user.inbox_prefix(prefix);
            }
            Ok(if permissions["allow_responses"] == true { user.allow_responses() } else { user })
        })
        .collect()
}

/// Copies the declarations of `nats/`, changed as the test wants them.
fn declare(directory: &Path, declarations: &Declarations) -> Result<()> {
    std::fs::copy(repository("nats/stream.json"), directory.join("stream.json"))?;
    let consumers = directory.join("consumers");
    std::fs::create_dir(&consumers)?;
    for service in Service::ALL {
        let file = format!("{service}.json");
        let mut consumer = read(&repository("nats/consumers").join(&file))?;
        if let Some(ack_wait) = declarations.ack_wait {
            consumer["ack_wait"] = json!(u64::try_from(ack_wait.as_nanos())?);
        }
        let heard = consumer["filter_subjects"].as_array_mut();
        let heard = heard.ok_or_else(|| anyhow!("the durable of {service} has no filters"))?;
        heard.extend(declarations.also_hear.iter().map(|subject| json!(subject)));
        std::fs::write(consumers.join(file), consumer.to_string())?;
    }
    Ok(())
}

fn read(file: &Path) -> Result<Value> {
    let text = std::fs::read(file).with_context(|| format!("read {}", file.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is not JSON", file.display()))
}
