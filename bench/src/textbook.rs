//! The textbook outbox, as blog posts and many libraries have it: a status column, a poll every 500 ms, 100 rows
//! `for update skip locked` by age, published and marked one by one.

use std::time::{Duration, Instant};

use async_nats::jetstream;
use async_nats::jetstream::message::PublishMessage;
use sqlx::PgPool;
use uuid::Uuid;

use crate::rig::Rig;

/// The poll interval of the textbook.
const POLL: Duration = Duration::from_millis(500);

/// The batch of the textbook.
const BATCH: i64 = 100;

const SCHEMA: &str = "
    create table textbook_outbox (
        id             uuid        primary key,
        aggregate_type text        not null,
        aggregate_id   text        not null,
        event_type     text        not null,
        payload        jsonb       not null,
        created_at     timestamptz not null default now(),
        published_at   timestamptz,
        retry_count    integer     not null default 0,
        status         text        not null default 'PENDING'
    );
    create index textbook_outbox_pending on textbook_outbox (status, created_at);";

/// Facts a second over `time`, with a backlog that does not run out.
pub(crate) async fn rate(rig: &Rig, rows: usize, time: Duration) -> anyhow::Result<f64> {
    sqlx::raw_sql(SCHEMA).execute(&rig.pool).await?;
    sqlx::query(
        "insert into textbook_outbox (id, aggregate_type, aggregate_id, event_type, payload)
         select gen_random_uuid(), 'bench', ((n % 5000) + 1)::text, 'bench.happened.v1',
                jsonb_build_object('id', n, 'text', repeat('x', 440))
         from generate_series(1, $1) n",
    )
    .bind(i32::try_from(rows)?)
    .execute(&rig.pool)
    .await?;
    let jetstream = jetstream::new(rig.nats.admin().await?);
    let mut ticks = tokio::time::interval(POLL);
    let begun = Instant::now();
    let mut published = 0;
    while begun.elapsed() < time {
        ticks.tick().await;
        published += poll(&rig.pool, &jetstream).await?;
    }
    Ok(published as f64 / begun.elapsed().as_secs_f64())
}

async fn poll(pool: &PgPool, jetstream: &jetstream::Context) -> anyhow::Result<usize> {
    let mut tx = pool.begin().await?;
    let rows: Vec<(Uuid, String, serde_json::Value)> = sqlx::query_as(
        "select id, event_type, payload from textbook_outbox
         where status = 'PENDING' order by created_at limit $1 for update skip locked",
    )
    .bind(BATCH)
    .fetch_all(&mut *tx)
    .await?;
    for (id, event_type, payload) in &rows {
        let body = serde_json::to_vec(payload)?;
        let message = PublishMessage::build().message_id(id.to_string()).payload(body.into());
        jetstream.send_publish(format!("evt.textbook.{event_type}"), message).await?.await?;
        sqlx::query("update textbook_outbox set status = 'PUBLISHED', published_at = now() where id = $1")
            .bind(id)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    Ok(rows.len())
}
