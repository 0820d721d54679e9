//! A sample domain: a thing is opened, somebody answers. The answering subscriber does what its script says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use envelope::Event;
use mesh::{Backoff, Failure, Handled, Policy, Received, Service, Subscriber, Tx};
use serde::{Deserialize, Serialize};
use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use uuid::Uuid;

/// Service, domain and durable.
pub(crate) const SERVICE: &str = "probe";

/// Something was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub(crate) id: Uuid,
    pub(crate) n: u32,
}

impl Event for Opened {
    const DOMAIN: &'static str = SERVICE;
    const NAME: &'static str = "opened";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 0;

    fn key(&self) -> String {
        self.id.to_string()
    }
}

/// Somebody answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) id: Uuid,
    pub(crate) n: u32,
}

impl Event for Answered {
    const DOMAIN: &'static str = SERVICE;
    const NAME: &'static str = "answered";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 0;

    fn key(&self) -> String {
        self.id.to_string()
    }
}

/// What the handler does with a fact, after its effect is written and its answer is published.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Nothing else.
    Answer,
    /// Fails for a reason that may pass.
    Fail(&'static str),
    /// Says that trying again cannot help.
    Reject,
    Panic,
    /// Never returns.
    Hang,
    /// Holds the transaction open for a while.
    Linger(Duration),
    /// Takes a failed statement for success.
    SwallowError,
}

/// One entry into the body of the handler, whether or not it was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) event_id: Uuid,
    pub(crate) key: Uuid,
    pub(crate) n: u32,
    pub(crate) attempt: u32,
    /// The id of the answer that was published.
    pub(crate) answer: Uuid,
}

type Script = dyn Fn(&Received<Opened>) -> Act + Send + Sync;

/// Answers what was opened, as its script says.
#[derive(Clone)]
pub(crate) struct AnswerOpened {
    script: Arc<Script>,
    policy: Policy,
    entries: Arc<Mutex<Vec<Entry>>>,
}

impl AnswerOpened {
    /// Answers everything.
    pub(crate) fn always() -> Self {
        Self::script(|_| Act::Answer)
    }

    pub(crate) fn script(script: impl Fn(&Received<Opened>) -> Act + Send + Sync + 'static) -> Self {
        let backoff = Backoff { first: Duration::from_millis(50), longest: Duration::from_millis(200) };
        let policy = Policy { attempts_max: 4, backoff, timeout: Duration::from_secs(10) };
        Self { script: Arc::new(script), policy, entries: Arc::default() }
    }

    pub(crate) fn policy(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        change(&mut self.policy);
        self
    }

    /// Every entry into the body so far, in order.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }
}

impl Subscriber for AnswerOpened {
    type Event = Opened;
    const NAME: &'static str = "answer-opened";

    fn policy(&self) -> Policy {
        self.policy
    }

    async fn handle(&self, tx: &mut Tx, received: Received<Opened>) -> Result<Handled, Failure> {
        let Opened { id, n } = received.event;
        let answer = tx.publish(&Answered { id, n })?;
        let entry = Entry { event_id: received.metadata.id, key: id, n, attempt: received.attempt, answer };
        self.entries.lock().unwrap().push(entry);
        sqlx::query("insert into effect (event_id, key, n) values ($1, $2, $3)")
            .bind(received.metadata.id)
            .bind(id)
            .bind(i64::from(n))
            .execute(&mut **tx)
            .await?;
        match (self.script)(&received) {
            Act::Answer => {}
            Act::Fail(why) => return Err(anyhow::anyhow!(why).into()),
            Act::Reject => return Err(Failure::Reject(anyhow::anyhow!("not now, not ever"))),
            Act::Panic => panic!("as scripted"),
            Act::Hang => std::future::pending().await,
            Act::SwallowError => {
                let _ = sqlx::query("select 1 / 0").execute(&mut **tx).await;
            }
            Act::Linger(time) => {
                sqlx::query("select pg_sleep($1)").bind(time.as_secs_f64()).execute(&mut **tx).await?;
            }
        }
        Ok(Handled::Effect)
    }
}

/// The service without subscribers.
pub(crate) fn service() -> Service {
    // No key on the event: an effect that happens twice is to be seen.
    let sql = "create table effect (
                   position bigint generated always as identity primary key,
                   event_id uuid not null,
                   key uuid not null,
                   n bigint not null
               )";
    let tables = Migration::new(1, "probe".into(), MigrationType::Simple, sql.into_sql_str(), false);
    Service::new(SERVICE, "test", Migrator::with_migrations(vec![tables]))
}
