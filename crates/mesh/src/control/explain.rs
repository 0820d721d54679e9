//! How facts got on with the subscribers of the service, and what of some keys has not been published: what a tool needs to
//! say why a flow does not go on.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use uuid::Uuid;

use super::request::Refused;
use crate::outbox;

/// Facts and keys in one question.
const ASKED_MAX: usize = 500;

/// Facts in the outbox that are listed.
const LISTED_MAX: i64 = 500;

/// The body of `mesh.ctl.<service>.explain`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    /// Facts that the service may have heard.
    #[serde(default)]
    events: Vec<Uuid>,
    /// Keys about which it may have something to say.
    #[serde(default)]
    keys: Vec<String>,
}

/// The answer.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Explained {
    /// Every delivery of a fact that anything is known about. One that is not here was not begun.
    deliveries: Vec<Delivered>,
    /// What is committed about the keys and not in the stream.
    unpublished: Vec<Unpublished>,
}

/// One fact and one subscriber.
#[derive(Debug, PartialEq, Serialize)]
struct Delivered {
    event_id: Uuid,
    subscriber: String,
    /// `handled`, `no_effect`, `retrying`, `parked`, `dead`, `discarded`.
    state: String,
    /// Why, as a code; nothing for `handled` and `retrying`.
    reason: Option<String>,
    /// The last failure.
    error: Option<String>,
    /// Executions that were made and did not settle it.
    attempts: Option<i32>,
    /// The kept fact that it queues up behind.
    behind: Option<Uuid>,
}

/// A fact in the outbox.
#[derive(Debug, PartialEq, Serialize)]
struct Unpublished {
    event_id: Uuid,
    event_type: String,
    key: String,
    /// Whether the relay gave it up.
    dead: bool,
    attempts: i32,
    error: Option<String>,
    waiting_seconds: f64,
}

/// Answers a question.
pub(super) async fn look(pool: &PgPool, Question { events, keys }: Question) -> Result<Explained, Refused> {
    if events.len() + keys.len() > ASKED_MAX {
        return Err(Refused::Bad(format!("at most {ASKED_MAX} facts and keys in one question")));
    }
    Ok(Explained { deliveries: deliveries(pool, &events).await?, unpublished: unpublished(pool, &keys).await? })
}

/// By primary key. An attempt that is left over from before the delivery settled says nothing any more.
async fn deliveries(pool: &PgPool, events: &[Uuid]) -> sqlx::Result<Vec<Delivered>> {
    sqlx::query_as!(
        Delivered,
        r#"
        select i.event_id as "event_id!", i.subscriber as "subscriber!",
               coalesce(d.state, case when i.no_effect is null then 'handled' else 'no_effect' end) as "state!",
               coalesce(d.reason, i.no_effect) as reason, d.detail as error, d.attempts, d.behind_event as behind
        from mesh.inbox i left join mesh.dead_letter d on d.event_id = i.event_id and d.subscriber = i.subscriber
        where i.event_id = any($1)
        union all
        select a.event_id, a.subscriber, 'retrying', null, a.history -> -1 ->> 'error', a.attempts, null
        from mesh.delivery_attempt a
        where a.event_id = any($1)
          and not exists (select from mesh.inbox i where i.event_id = a.event_id and i.subscriber = a.subscriber)
        order by 1, 2
        "#,
        events,
    )
    .fetch_all(pool)
    .await
}

/// Reads the unsent rows of the keys' groups: the table holds nothing else.
async fn unpublished(pool: &PgPool, keys: &[String]) -> sqlx::Result<Vec<Unpublished>> {
    let groups: BTreeSet<i16> = keys.iter().map(|key| outbox::bucket_group(envelope::bucket(key))).collect();
    let groups: Vec<i16> = groups.into_iter().collect();
    sqlx::query_as!(
        Unpublished,
        r#"
        select event_id as "event_id!", event_type as "event_type!", partition_key as "key!", false as "dead!",
               attempts as "attempts!", last_error as error,
               extract(epoch from clock_timestamp() - created_at)::float8 as "waiting_seconds!"
        from mesh.outbox where bucket_group = any($1) and partition_key = any($2)
        union all
        select event_id, event_type, partition_key, true, attempts, error,
               extract(epoch from clock_timestamp() - created_at)::float8
        from mesh.outbox_dead where bucket_group = any($1) and partition_key = any($2)
        order by 7 desc limit $3
        "#,
        &groups,
        keys,
        LISTED_MAX,
    )
    .fetch_all(pool)
    .await
}
