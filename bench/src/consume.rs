//! P5: how fast a deep backlog is consumed: the inbox row, a change of an account and a new fact for each message, against
//! the textbook that does the same with one transaction per message and one worker.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use async_nats::jetstream;
use async_nats::jetstream::consumer::PullConsumer;
use envelope::Event;
use futures_util::StreamExt;
use mesh::{BatchSubscriber, Failure, Handled, Received, Service, Subscriber, Tx};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use uuid::Uuid;

use crate::fact::Happened;
use crate::report::{Goal, Report, Series};
use crate::rig::{Rig, Sync};

/// Messages that the textbook is watched for: its rate is bound by its round trips and commits, and does not change.
const TEXTBOOK_MESSAGES: usize = 3_000;

const SCHEMA: &str = "
    create table account (id uuid primary key, balance bigint not null);
    create table textbook_inbox (event_id uuid primary key);
    create table textbook_facts (id uuid primary key, payload bytea not null);";

/// What is said about each fact.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Noted {
    id: Uuid,
}

impl Event for Noted {
    const DOMAIN: &'static str = "bench";
    const NAME: &'static str = "noted";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 0;

    fn key(&self) -> String {
        self.id.to_string()
    }
}

/// One fact after the other.
struct Note;

impl Subscriber for Note {
    type Event = Happened;
    const NAME: &'static str = "note";

    async fn handle(&self, tx: &mut Tx, received: Received<Happened>) -> Result<Handled, Failure> {
        sqlx::query("update account set balance = balance + 1 where id = $1")
            .bind(received.event.id)
            .execute(&mut **tx)
            .await?;
        tx.publish(&Noted { id: received.event.id })?;
        Ok(Handled::Effect)
    }
}

/// Many facts by one statement.
struct NoteMany;

impl BatchSubscriber for NoteMany {
    type Event = Happened;
    const NAME: &'static str = "note-many";

    async fn handle(&self, tx: &mut Tx, batch: &[Received<Happened>]) -> Result<Vec<Handled>, Failure> {
        let ids: Vec<Uuid> = batch.iter().map(|received| received.event.id).collect();
        sqlx::query("update account set balance = balance + 1 where id = any ($1)")
            .bind(ids)
            .execute(&mut **tx)
            .await?;
        for received in batch {
            tx.publish_for(received, &Noted { id: received.event.id })?;
        }
        Ok(vec![Handled::Effect; batch.len()])
    }
}

/// Consumes `rows` facts each way, `runs` times after one that warms up.
pub(crate) async fn against_textbook(report: &mut Report, runs: usize, rows: usize) -> anyhow::Result<()> {
    let mut textbook = Series::new("textbook consumer, one worker, messages/s");
    let mut single = Series::new("Subscriber, messages/s");
    let mut batch = Series::new("BatchSubscriber, messages/s");
    for run in 0..=runs {
        eprintln!("P5 run {run} of {runs} ({})", if run == 0 { "warm-up" } else { "measured" });
        let rig = Rig::start(Sync::Always).await?;
        prepare(&rig, rows).await?;
        let slow = textbook_rate(&rig).await?;
        let one = service_rate(&rig, service().subscribe(Note), "note", rows).await?;
        let many = service_rate(&rig, service().subscribe_batch(NoteMany), "note-many", rows).await?;
        if run > 0 {
            textbook.push(slow);
            single.push(one);
            batch.push(many);
        }
    }
    report.section("P5: consuming a backlog, same PostgreSQL and nats-server, synchronous commit");
    report.ratio("Subscriber / textbook consumer with one worker", &single, &textbook, Goal::AtLeast(8.0));
    report.ratio("BatchSubscriber / textbook consumer with one worker", &batch, &textbook, Goal::AtLeast(25.0));
    for series in [&textbook, &single, &batch] {
        report.series(series);
    }
    Ok(())
}

fn service() -> Service {
    Service::new("bench", "bench", sqlx::migrate::Migrator::DEFAULT)
}

/// An account for each fact, and the facts on the stream.
async fn prepare(rig: &Rig, rows: usize) -> anyhow::Result<()> {
    sqlx::raw_sql(SCHEMA).execute(&rig.pool).await?;
    rig.fill_with(rows, Happened::of_its_own).await?;
    sqlx::query("insert into account (id, balance) select partition_key::uuid, 0 from mesh.outbox")
        .execute(&rig.pool)
        .await?;
    let relay = rig.relay().await?;
    while !rig.is_drained().await? {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    relay.stop().await
}

/// Messages a second with one transaction for each, one after the other.
async fn textbook_rate(rig: &Rig) -> anyhow::Result<f64> {
    let consumer = rig.durable("textbook").await?;
    let mut seen = 0;
    let begun = Instant::now();
    while seen < TEXTBOOK_MESSAGES {
        let mut messages = consumer.fetch().max_messages(100).messages().await?;
        while let Some(message) = messages.next().await {
            let message = message.map_err(anyhow::Error::from_boxed)?;
            textbook_message(&rig.pool, &message).await?;
            message.ack().await.map_err(anyhow::Error::from_boxed)?;
            seen += 1;
        }
    }
    Ok(seen as f64 / begun.elapsed().as_secs_f64())
}

async fn textbook_message(pool: &PgPool, message: &jetstream::Message) -> anyhow::Result<()> {
    let headers = message.headers.as_ref().context("a message without headers")?;
    let event_id: Uuid = headers.get("ce-id").context("no ce-id")?.as_str().parse()?;
    let happened: Happened = serde_json::from_slice(&message.payload)?;
    let mut tx = pool.begin().await?;
    sqlx::query("insert into textbook_inbox (event_id) values ($1) on conflict do nothing")
        .bind(event_id)
        .execute(&mut *tx)
        .await?;
    sqlx::query("update account set balance = balance + 1 where id = $1").bind(happened.id).execute(&mut *tx).await?;
    sqlx::query("insert into textbook_facts (id, payload) values (gen_random_uuid(), $1)")
        .bind(message.payload.as_ref())
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(())
}

/// Messages a second from the start of the service to the last settled message.
async fn service_rate(rig: &Rig, service: Service, subscriber: &str, rows: usize) -> anyhow::Result<f64> {
    let _: PullConsumer = rig.durable("bench").await?;
    let settled = || async {
        let count: i64 = sqlx::query_scalar("select count(*) from mesh.inbox where subscriber = $1")
            .bind(subscriber)
            .fetch_one(&rig.pool)
            .await?;
        anyhow::Ok(usize::try_from(count)?)
    };
    let balance = || async {
        let sum: i64 = sqlx::query_scalar("select sum(balance)::bigint from account").fetch_one(&rig.pool).await?;
        anyhow::Ok(usize::try_from(sum)?)
    };
    let before = (balance().await?, rig.pending().await?);
    let begun = Instant::now();
    let running = rig.consumer(service).await?;
    while settled().await? < rows {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let rate = rows as f64 / begun.elapsed().as_secs_f64();
    running.stop().await?;
    let after = (balance().await?, rig.pending().await?);
    ensure!(after.0 == before.0 + rows, "{rows} messages changed the balances by {}", after.0 - before.0);
    ensure!(after.1 == before.1 + i64::try_from(rows)?, "{rows} messages left {} facts", after.1 - before.1);
    Ok(rate)
}
