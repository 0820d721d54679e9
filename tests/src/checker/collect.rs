//! Reads what a run left behind: the databases, the stream, and what the services answer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use async_nats::Client;
use async_nats::jetstream::{self, consumer::pull};
use futures_util::StreamExt;
use serde_json::Value;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::stock::pieces;
use super::{
    DeadLetter, Evidence, LedgerEntry, MeshTables, OrderRow, PaymentRow, Record, ReservationRow, SentRow, Shown,
    StockRow, Stored, catalogue,
};

const STREAM: &str = "EVT";

/// Where to look.
#[derive(Debug)]
pub struct Sources {
    /// Database of each service, as a URL of a role that may read everything.
    pub databases: BTreeMap<String, String>,
    /// Address of each service, as `http://host:port`.
    pub http: BTreeMap<String, String>,
    /// A client that may read the stream.
    pub nats: Client,
    /// The directory of the catalogue.
    pub catalogue: PathBuf,
}

/// Collects everything. The run must be over: nothing in flight, every service up.
///
/// # Errors
/// When something cannot be read.
pub async fn collect(sources: &Sources, record: &Record) -> Result<Evidence> {
    let mut evidence = Evidence { reactions: catalogue::read(&sources.catalogue)?, ..Evidence::default() };
    for (service, url) in &sources.databases {
        let mut database =
            PgConnection::connect(url).await.with_context(|| format!("enter the database of {service}"))?;
        let read = async {
            match service.as_str() {
                "orders" => evidence.orders = orders(&mut database).await?,
                "payments" => {
                    evidence.ledger = ledger(&mut database).await?;
                    evidence.payments = payments(&mut database).await?;
                }
                "inventory" => {
                    evidence.stock = stock(&mut database).await?;
                    evidence.reservations = reservations(&mut database).await?;
                }
                _ => bail!("there is no service {service}"),
            }
            mesh_tables(&mut database, service).await
        };
        let tables = read.await.with_context(|| format!("read the database of {service}"))?;
        evidence.mesh.insert(service.clone(), tables);
        database.close().await?;
    }
    evidence.stream = stream(&sources.nats).await.context("read the stream")?;
    evidence.shown = shown(&sources.http, record).await.context("ask the services")?;
    Ok(evidence)
}

async fn orders(database: &mut PgConnection) -> Result<BTreeMap<Uuid, OrderRow>> {
    let rows: Vec<(Uuid, String, Option<String>, i64, String)> = sqlx::query_as(
        "select o.order_id, o.status, o.cancel_reason, o.total, coalesce(f.stage, 'missing')
         from orders o left join flow_state f on f.order_id = o.order_id",
    )
    .fetch_all(database)
    .await?;
    let row = |(id, status, cancel_reason, total, stage)| (id, OrderRow { status, cancel_reason, total, stage });
    Ok(rows.into_iter().map(row).collect())
}

async fn ledger(database: &mut PgConnection) -> Result<Vec<LedgerEntry>> {
    let rows: Vec<(String, i64, String, Value)> = sqlx::query_as(
        "select stream_id, stream_version, event_type, payload from event_store order by stream_id, stream_version",
    )
    .fetch_all(database)
    .await?;
    let id = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
    rows.into_iter()
        .map(|(stream_id, version, kind, payload)| {
            let customer = stream_id.strip_prefix("account-").and_then(|customer| customer.parse().ok());
            let amount = if kind == "opened" { &payload["balance"] } else { &payload["amount"] };
            let minor = amount["minor"].as_i64().filter(|minor| *minor >= 0);
            Ok(LedgerEntry {
                customer_id: customer.ok_or_else(|| anyhow!("{stream_id} is no account"))?,
                version,
                order_id: id(&payload["order_id"]),
                payment_id: id(&payload["payment_id"]),
                minor: minor.ok_or_else(|| anyhow!("entry {version} of {stream_id} has no amount: {payload}"))?,
                kind,
            })
        })
        .collect()
}

async fn payments(database: &mut PgConnection) -> Result<BTreeMap<Uuid, PaymentRow>> {
    let rows: Vec<(Uuid, String, Option<i64>)> =
        sqlx::query_as("select order_id, state, amount from payment").fetch_all(database).await?;
    Ok(rows.into_iter().map(|(id, state, amount)| (id, PaymentRow { state, amount })).collect())
}

async fn stock(database: &mut PgConnection) -> Result<BTreeMap<String, StockRow>> {
    let rows: Vec<(String, i64, i64)> =
        sqlx::query_as("select sku, on_hand, reserved from stock").fetch_all(database).await?;
    Ok(rows.into_iter().map(|(sku, on_hand, reserved)| (sku, StockRow { on_hand, reserved })).collect())
}

async fn reservations(database: &mut PgConnection) -> Result<BTreeMap<Uuid, ReservationRow>> {
    let rows: Vec<(Uuid, String, Option<Value>)> =
        sqlx::query_as("select order_id, state, lines from reservation").fetch_all(database).await?;
    let row = |(id, state, lines): (Uuid, String, Option<Value>)| {
        (id, ReservationRow { state, pieces: pieces(&lines.unwrap_or_default()) })
    };
    Ok(rows.into_iter().map(row).collect())
}

async fn mesh_tables(database: &mut PgConnection, service: &str) -> Result<MeshTables> {
    let unsent = sqlx::query_scalar("select event_id from mesh.outbox union all select event_id from mesh.outbox_dead")
        .fetch_all(&mut *database)
        .await?;
    let sent: Vec<(Uuid, String, String, i64, Vec<u8>, i64)> = sqlx::query_as(
        "select event_id, event_type, partition_key, key_version, payload, stream_sequence from mesh.outbox_sent",
    )
    .fetch_all(&mut *database)
    .await?;
    let row = |(event_id, event_type, key, key_version, payload, stream_sequence)| SentRow {
        event_id,
        event_type,
        key,
        key_version,
        payload,
        stream_sequence,
    };
    // A delivery that is kept as a dead letter has a row in the inbox as well, which says so.
    let settled =
        sqlx::query_as("select event_id, subscriber from mesh.inbox where no_effect is distinct from 'dead_letter'")
            .fetch_all(&mut *database)
            .await?;
    let kept = sqlx::query_as("select event_id, subscriber from mesh.inbox where no_effect = 'dead_letter'")
        .fetch_all(&mut *database)
        .await?;
    let unsettled =
        sqlx::query_as("select event_id, subscriber from mesh.delivery_attempt").fetch_all(&mut *database).await?;
    let dead: Vec<(Uuid, String, String)> =
        sqlx::query_as("select event_id, subscriber, reason from mesh.dead_letter").fetch_all(&mut *database).await?;
    let letter = |(id, subscriber, reason)| (id, DeadLetter { service: service.to_owned(), subscriber, reason });
    let versions: Vec<(String, i64)> =
        sqlx::query_as("select partition_key, version from mesh.key_version").fetch_all(&mut *database).await?;
    Ok(MeshTables {
        unsent,
        sent: sent.into_iter().map(row).collect(),
        settled,
        kept,
        dead: dead.into_iter().map(letter).collect(),
        unsettled,
        versions: versions.into_iter().collect(),
    })
}

/// Every stored message, in order.
async fn stream(nats: &Client) -> Result<Vec<Stored>> {
    let mut stream = jetstream::new(nats.clone()).get_stream(STREAM).await?;
    let last = stream.info().await?.state.last_sequence;
    let mut all = Vec::new();
    if last == 0 {
        return Ok(all);
    }
    let consumer = stream.create_consumer(pull::OrderedConfig::default()).await?;
    let mut messages = consumer.messages().await?;
    while let Some(message) = messages.next().await {
        let message = message?;
        let sequence = message.info().map_err(|error| anyhow!("a message without its place: {error}"))?.stream_sequence;
        let headers = message.headers.clone().unwrap_or_default();
        let headers = headers
            .iter()
            .flat_map(|(name, values)| values.iter().map(move |value| (name.to_string(), value.to_string())));
        all.push(Stored {
            sequence,
            subject: message.subject.to_string(),
            headers: headers.collect(),
            body: message.payload.to_vec(),
        });
        if sequence >= last {
            return Ok(all);
        }
    }
    bail!("the stream ended before its message {last}")
}

/// What the services answer about everything in the record.
async fn shown(http: &BTreeMap<String, String>, record: &Record) -> Result<Shown> {
    let client = reqwest::Client::new();
    let mut shown = Shown::default();
    let base = |service: &str| http.get(service).ok_or_else(|| anyhow!("{service} has no address"));
    let mut cursor = None;
    loop {
        let next = cursor.map(|cursor: String| format!("&cursor={cursor}")).unwrap_or_default();
        let page = get(&client, &format!("{}/orders?limit=200{next}", base("orders")?)).await?;
        for order in page["items"].as_array().ok_or_else(|| anyhow!("the list of orders has no items: {page}"))? {
            let text = |member: &str| order[member].as_str().map(str::to_owned);
            let id = text("order_id").and_then(|id| id.parse().ok()).ok_or_else(|| anyhow!("no id in {order}"))?;
            shown.orders.insert(id, (text("status").unwrap_or_default(), text("cancel_reason")));
        }
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    for customer_id in record.deposits.keys() {
        let account = get(&client, &format!("{}/accounts/{customer_id}", base("payments")?)).await?;
        shown.balances.insert(*customer_id, account["balance"].as_i64().unwrap_or(i64::MIN));
    }
    for sku in record.stocked.keys() {
        let stock = get(&client, &format!("{}/stock/{sku}", base("inventory")?)).await?;
        let count = |member: &str| stock[member].as_i64().unwrap_or(i64::MIN);
        shown.stock.insert(sku.clone(), (count("on_hand"), count("reserved"), count("available")));
    }
    Ok(shown)
}

async fn get(client: &reqwest::Client, url: &str) -> Result<Value> {
    let response = client.get(url).send().await?;
    let (status, text) = (response.status(), response.text().await?);
    if !status.is_success() {
        bail!("{url} answered {status}: {text}");
    }
    serde_json::from_str(&text).with_context(|| format!("{url} answered {text}"))
}
