//! Letters as an operator looks at them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;
use sqlx::PgPool;
use time::OffsetDateTime;
use time::serde::rfc3339;
use uuid::Uuid;

use super::Filter;

/// Letters that wait behind one, by fact, that are shown.
const BEHIND_MAX: i64 = 50;

/// One page of a list, the last kept first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Page {
    letters: Vec<Summary>,
    /// What to give as `cursor` for the next page; null on the last one.
    next_cursor: Option<i64>,
}

/// A letter without its bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Summary {
    id: i64,
    subscriber: String,
    event_id: Uuid,
    event_type: String,
    key: String,
    flow_id: Option<Uuid>,
    state: String,
    reason: String,
    detail: String,
    attempts: i32,
    /// The fact behind which it was kept.
    behind_event: Option<Uuid>,
    stream_sequence: i64,
    #[serde(with = "rfc3339")]
    kept_at: OffsetDateTime,
    #[serde(with = "rfc3339::option")]
    retry_at: Option<OffsetDateTime>,
    #[serde(with = "rfc3339::option")]
    discarded_at: Option<OffsetDateTime>,
    discarded_by: Option<String>,
    discard_reason: Option<String>,
}

/// A letter with everything about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Shown {
    #[serde(flatten)]
    summary: Summary,
    /// Each attempt with its time, error and build.
    history: Value,
    subject: String,
    /// Pairs of name and value, as received.
    headers: Value,
    payload_base64: String,
    /// The same as text, when it is text.
    payload_text: Option<String>,
    /// The build that gave the delivery up.
    build: String,
    /// An earlier letter of the key has to go first.
    waits_for: Option<Uuid>,
    /// Letters that wait behind this one, and the first of them by fact.
    behind_count: i64,
    behind: Vec<Uuid>,
    /// The inbox still tells a repeat from the first: without that it is not redriven.
    can_be_redriven: bool,
}

/// Reads a page; `cursor` is the id of the last letter of the page before.
pub(crate) async fn list(pool: &PgPool, filter: &Filter, cursor: Option<i64>, limit: u16) -> sqlx::Result<Page> {
    let mut letters = sqlx::query_as!(
        Summary,
        r#"
        select id, subscriber, event_id, event_type, partition_key as key, correlation_id as flow_id, state, reason, detail,
               attempts, behind_event, stream_sequence, parked_at as kept_at, retry_at, discarded_at, discarded_by,
               discard_reason
        from mesh.dead_letter
        where ($1::bigint[] is null or id = any ($1)) and ($2::text is null or subscriber = $2)
          and ($3::text is null or reason = $3) and state = any ($4) and ($5::text is null or event_type = $5)
          and ($6::text is null or partition_key = $6) and ($7::uuid is null or correlation_id = $7)
          and ($8::uuid is null or event_id = $8) and ($9::bigint is null or id < $9)
        order by id desc
        limit $10
        "#,
        filter.ids.as_deref(),
        filter.subscriber.as_deref(),
        filter.reason.as_deref(),
        &filter.states(),
        filter.event_type.as_deref(),
        filter.key.as_deref(),
        filter.flow,
        filter.event_id,
        cursor,
        i64::from(limit) + 1,
    )
    .fetch_all(pool)
    .await?;
    let more = letters.len() > usize::from(limit);
    letters.truncate(usize::from(limit));
    let next_cursor = letters.last().filter(|_| more).map(|last| last.id);
    Ok(Page { letters, next_cursor })
}

/// Reads one letter; nothing when there is none of that id.
pub(crate) async fn show(pool: &PgPool, id: i64) -> sqlx::Result<Option<Shown>> {
    let row = sqlx::query!(
        r#"
        select d.id, d.subscriber, d.event_id, d.event_type, d.partition_key, d.correlation_id, d.state, d.reason, d.detail,
               d.attempts, d.behind_event, d.stream_sequence, d.parked_at, d.retry_at, d.discarded_at, d.discarded_by,
               d.discard_reason, d.history, d.subject, d.headers, d.payload, d.build,
               (select e.event_id from mesh.dead_letter e
                where e.subscriber = d.subscriber and e.partition_key = d.partition_key and e.state <> 'discarded'
                  and (e.stream_sequence, e.id) < (d.stream_sequence, d.id)
                order by e.stream_sequence desc, e.id desc limit 1) as waits_for,
               exists (select from mesh.inbox i
                       where i.event_id = d.event_id and i.subscriber = d.subscriber) as "remembered!"
        from mesh.dead_letter d
        where d.id = $1
        "#,
        id,
    )
    .fetch_optional(pool)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let behind = behind(pool, id).await?;
    Ok(Some(Shown {
        summary: Summary {
            id: row.id,
            subscriber: row.subscriber,
            event_id: row.event_id,
            event_type: row.event_type,
            key: row.partition_key,
            flow_id: row.correlation_id,
            state: row.state,
            reason: row.reason,
            detail: row.detail,
            attempts: row.attempts,
            behind_event: row.behind_event,
            stream_sequence: row.stream_sequence,
            kept_at: row.parked_at,
            retry_at: row.retry_at,
            discarded_at: row.discarded_at,
            discarded_by: row.discarded_by,
            discard_reason: row.discard_reason,
        },
        history: row.history,
        subject: row.subject,
        headers: serde_json::from_str(&row.headers).unwrap_or(Value::String(row.headers)),
        payload_base64: STANDARD.encode(&row.payload),
        payload_text: String::from_utf8(row.payload).ok(),
        build: row.build,
        waits_for: row.waits_for,
        behind_count: behind.first().map_or(0, |first| first.1),
        behind: behind.into_iter().map(|(event, _)| event).collect(),
        can_be_redriven: row.remembered,
    }))
}

/// The later letters of the key, the first of them by fact, each with the number of all.
async fn behind(pool: &PgPool, id: i64) -> sqlx::Result<Vec<(Uuid, i64)>> {
    let rows = sqlx::query!(
        r#"
        select e.event_id, count(*) over () as "count!"
        from mesh.dead_letter d
        join mesh.dead_letter e on e.subscriber = d.subscriber and e.partition_key = d.partition_key
             and e.state <> 'discarded' and (e.stream_sequence, e.id) > (d.stream_sequence, d.id)
        where d.id = $1 and d.state <> 'discarded'
        order by e.stream_sequence, e.id
        limit $2
        "#,
        id,
        BEHIND_MAX,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| (row.event_id, row.count)).collect())
}
