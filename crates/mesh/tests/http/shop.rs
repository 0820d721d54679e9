//! A service of one table: tallies that requests add to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use envelope::Event;
use mesh::http::{NoBody, Operation, Path, Problem, Reply, post, put};
use mesh::testing::TestBed;
use mesh::{Mesh, Service, Tx};
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use testkit::{TestDatabase, wait};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

const TABLES: &str = "
    create table tally (name text primary key, value bigint not null);
    create sequence doom;
    create function strike() returns trigger language plpgsql as $$
    begin
        if new.name like 'doomed%' and nextval('doom') = 1 then perform pg_terminate_backend(pg_backend_pid()); end if;
        return null;
    end $$;
    -- Deferred, so that it strikes during COMMIT.
    create constraint trigger strike after insert or update on tally deferrable initially deferred
        for each row execute function strike();
";

/// A tally was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TallyChanged {
    pub(crate) change_id: Uuid,
    pub(crate) amount: i64,
}

impl Event for TallyChanged {
    const DOMAIN: &'static str = "shop";
    const NAME: &'static str = "tally_changed";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 0;

    fn key(&self) -> String {
        self.change_id.to_string()
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Amount {
    amount: i64,
}

async fn add(tx: &mut Tx, name: &str, amount: i64) -> Result<Reply, Problem> {
    let value: i64 = sqlx::query_scalar(
        "insert into tally (name, value) values ($1, $2)
         on conflict (name) do update set value = tally.value + excluded.value returning value",
    )
    .bind(name)
    .bind(amount)
    .fetch_one(&mut **tx)
    .await?;
    let change_id = tx.derive_id("change");
    tx.publish(&TallyChanged { change_id, amount })?;
    Ok(Reply::created(format!("/tallies/{name}"), &json!({ "value": value, "change_id": change_id })))
}

/// Adds at once.
struct Add;

impl Operation for Add {
    const NAME: &'static str = "add";
    type Path = String;
    type Body = Amount;

    async fn execute(&self, tx: &mut Tx, name: String, body: Amount) -> Result<Reply, Problem> {
        add(tx, &name, body.amount).await
    }
}

/// Adds, and then holds its transaction open until it is let go.
struct AddSlowly(Arc<Gate>);

/// Where [`AddSlowly`] stands.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) entered: Notify,
    pub(crate) open: Semaphore,
}

impl Operation for AddSlowly {
    const NAME: &'static str = "add-slowly";
    type Path = String;
    type Body = Amount;

    async fn execute(&self, tx: &mut Tx, name: String, body: Amount) -> Result<Reply, Problem> {
        let reply = add(tx, &name, body.amount).await?;
        self.0.entered.notify_one();
        let _passed = self.0.open.acquire().await.map_err(Problem::internal)?;
        Ok(reply)
    }
}

/// Adds, then fails with the error code in its path as often as the amount says.
struct Stumble(Arc<AtomicU32>);

impl Operation for Stumble {
    const NAME: &'static str = "stumble";
    type Path = String;
    type Body = Amount;

    async fn execute(&self, tx: &mut Tx, code: String, body: Amount) -> Result<Reply, Problem> {
        let run = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        let reply = add(tx, "stumbled", 1).await?;
        if i64::from(run) <= body.amount {
            let raise = format!("do $$ begin raise exception 'lost' using errcode = '{code}'; end $$");
            sqlx::raw_sql(sqlx::AssertSqlSafe(raise)).execute(&mut **tx).await?;
        }
        Ok(reply)
    }
}

/// Adds, and then refuses or panics.
struct Refuse;

impl Operation for Refuse {
    const NAME: &'static str = "refuse";
    type Path = String;
    type Body = NoBody;

    async fn execute(&self, tx: &mut Tx, how: String, _: NoBody) -> Result<Reply, Problem> {
        add(tx, "refused", 1).await?;
        match how.as_str() {
            "panic" => panic!("as asked"),
            "internal" => Err(anyhow::anyhow!("the secret cause").into()),
            _ => Err(Problem::conflict("the tally is closed")),
        }
    }
}

async fn read(
    axum::extract::State(mesh): axum::extract::State<Mesh>,
    Path(name): Path<String>,
) -> Result<axum::Json<Value>, Problem> {
    let value: Option<i64> =
        sqlx::query_scalar("select value from tally where name = $1").bind(&name).fetch_optional(mesh.pool()).await?;
    let value = value.ok_or_else(|| Problem::not_found(format!("no tally is called {name}")))?;
    Ok(axum::Json(json!({ "value": value })))
}

async fn by_id(Path(id): Path<Uuid>) -> String {
    id.to_string()
}

async fn panic() -> &'static str {
    panic!("as asked")
}

/// The running service of one test.
pub(crate) struct Shop {
    pub(crate) bed: TestBed,
    pub(crate) gate: Arc<Gate>,
    /// How often [`Stumble`] ran.
    pub(crate) runs: Arc<AtomicU32>,
    address: SocketAddr,
    http: Client,
    _database: TestDatabase,
}

impl Shop {
    pub(crate) async fn open() -> Self {
        let gate = Arc::new(Gate { entered: Notify::new(), open: Semaphore::new(0) });
        let runs = Arc::new(AtomicU32::new(0));
        let prepare = |url: String| async move { mesh::testing::migrate(&service(Router::new()), &url).await };
        let database = testkit::database("shop", prepare).await.unwrap();
        let mut bed = TestBed::new(service(routes(&gate, &runs)), database.pool().clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = bed.router().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            bed,
            gate,
            runs,
            address,
            http: Client::builder().timeout(PATIENCE).build().unwrap(),
            _database: database,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.http.get(format!("http://{}{path}", self.address))
    }

    pub(crate) fn post(&self, path: &str) -> RequestBuilder {
        self.http.post(format!("http://{}{path}", self.address))
    }

    /// Adds one to the tally, with a key.
    pub(crate) fn add(&self, path: &str, key: &str) -> RequestBuilder {
        self.post(path).header("idempotency-key", key).json(&json!({ "amount": 1 }))
    }

    /// What is committed: the tally, 0 when it does not exist.
    pub(crate) async fn value(&self, name: &str) -> i64 {
        sqlx::query_scalar("select coalesce((select value from tally where name = $1), 0)")
            .bind(name)
            .fetch_one(self.bed.pool())
            .await
            .unwrap()
    }

    pub(crate) async fn wait_for_value(&self, name: &str, expected: i64) {
        wait::until(&format!("{name} = {expected}"), PATIENCE, || async {
            match self.value(name).await {
                value if value == expected => Ok(()),
                value => Err(value),
            }
        })
        .await
        .unwrap();
    }

    /// How many replies are stored.
    pub(crate) async fn stored_replies(&self) -> i64 {
        sqlx::query_scalar("select count(*) from mesh.idempotency").fetch_one(self.bed.pool()).await.unwrap()
    }

    pub(crate) async fn published(&self) -> usize {
        self.bed.published::<TallyChanged>().await.unwrap().len()
    }
}

fn routes(gate: &Arc<Gate>, runs: &Arc<AtomicU32>) -> Router<Mesh> {
    Router::new()
        .route("/tallies/{name}", post(Add).get(read))
        .route("/slow/{name}", put(AddSlowly(Arc::clone(gate))).merge(post(AddSlowly(Arc::clone(gate)))))
        .route("/stumble/{code}", post(Stumble(Arc::clone(runs))))
        .route("/refuse/{how}", post(Refuse))
        .route("/ids/{id}", get(by_id))
        .route("/panic", get(panic))
}

fn service(routes: Router<Mesh>) -> Service {
    let tables = Migration::new(1, "tables".into(), MigrationType::Simple, TABLES.into_sql_str(), false);
    Service::new("shop", "1.2.3", Migrator::with_migrations(vec![tables])).routes(routes)
}

/// The status and the problem of a refused request.
pub(crate) async fn problem(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["status"], status.as_u16());
    (status, problem)
}
