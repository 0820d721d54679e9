//! Where a fact is on its way to the stream, and what holds it up.

use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

/// Rows of one key that are looked at.
const ROWS_MAX: i64 = 200;

/// Which fact, or the facts of which key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    pub(crate) event_id: Option<Uuid>,
    pub(crate) key: Option<String>,
}

/// The facts of one key, each with what holds it up.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Explanation {
    /// Null when no such fact is known: never committed here, or sent so long ago that it was forgotten.
    pub(crate) key: Option<String>,
    /// Who publishes the facts of the key; null when the key is not known.
    pub(crate) lease: Option<Lease>,
    /// Those that were asked for, in their order.
    pub(crate) facts: Vec<Fact>,
}

/// The lease of the key's bucket group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Lease {
    bucket_group: i16,
    owner: Option<Uuid>,
    label: Option<String>,
    /// Negative when it has run out; null when nobody has it.
    expires_in_seconds: Option<f64>,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Fact {
    event_id: Uuid,
    event_type: String,
    place: Place,
    cause: Cause,
    /// The fact that has to go first.
    held_by: Option<Uuid>,
    attempts: i32,
    last_error: Option<String>,
    /// Since it was committed, or, when it was sent, from there until it was.
    waiting_seconds: f64,
    /// Where in the stream it is.
    stream_sequence: Option<i64>,
}

/// Which table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Place {
    Outbox,
    Dead,
    Sent,
}

/// What holds it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Cause {
    /// Nothing: the stream has it.
    Sent,
    /// Every publish was refused; a retry puts it back.
    GivenUp,
    /// A fact of its key was given up: retry that one.
    BehindGivenUp,
    /// An earlier fact of its key waits itself.
    Behind,
    /// No relay holds the lease of its bucket group.
    NobodyPublishes,
    /// The last publish was refused, and it is tried again.
    BackingOff,
    /// Nothing: it is the next of its key.
    Next,
}

/// A row that waits or was given up.
#[derive(Debug, Clone)]
struct Row {
    seq: i64,
    event_id: Uuid,
    event_type: String,
    attempts: i32,
    error: Option<String>,
    waiting_seconds: f64,
    is_dead: bool,
}

/// Looks for it. There is no index for it, on purpose: the tables are written for every fact and searched by hand only.
pub(crate) async fn explain(pool: &PgPool, question: &Question) -> sqlx::Result<Explanation> {
    let mut tx = pool.begin().await?;
    let explained = look(&mut tx, question).await;
    tx.rollback().await?;
    explained
}

async fn look(connection: &mut PgConnection, question: &Question) -> sqlx::Result<Explanation> {
    sqlx::query("set local statement_timeout = '5s'").execute(&mut *connection).await?;
    let unsent = match (&question.key, question.event_id) {
        (None, Some(event_id)) => key_of(connection, event_id).await?,
        (key, _) => key.clone(),
    };
    let mut explanation = Explanation { key: unsent.clone(), lease: None, facts: Vec::new() };
    if let Some(key) = unsent {
        let lease = lease(connection, super::bucket_group(envelope::bucket(&key))).await?;
        let rows = rows(connection, &key).await?;
        let is_leased = lease.expires_in_seconds.is_some_and(|seconds| seconds > 0.0);
        explanation.facts = causes(&rows, is_leased);
        explanation.lease = Some(lease);
    }
    if let Some(event_id) = question.event_id {
        explanation.facts.retain(|fact| fact.event_id == event_id);
        if explanation.facts.is_empty()
            && let Some((key, fact)) = sent(connection, event_id).await?
        {
            explanation = Explanation { key: Some(key), lease: None, facts: vec![fact] };
        }
    }
    Ok(explanation)
}

async fn key_of(connection: &mut PgConnection, event_id: Uuid) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!(
        r#"
        select partition_key as "key!" from mesh.outbox where event_id = $1
        union all
        select partition_key from mesh.outbox_dead where event_id = $1
        limit 1
        "#,
        event_id,
    )
    .fetch_optional(connection)
    .await
}

async fn lease(connection: &mut PgConnection, bucket_group: i16) -> sqlx::Result<Lease> {
    sqlx::query_as!(
        Lease,
        r#"
        select l.bucket_group, l.owner, r.label as "label?",
               case when isfinite(l.expires_at)
                    then extract(epoch from l.expires_at - clock_timestamp())::float8 end as expires_in_seconds
        from mesh.outbox_lease l left join mesh.outbox_relay r on r.owner = l.owner
        where l.bucket_group = $1
        "#,
        bucket_group,
    )
    .fetch_one(connection)
    .await
}

/// What waits and what was given up, in its order.
async fn rows(connection: &mut PgConnection, key: &str) -> sqlx::Result<Vec<Row>> {
    sqlx::query_as!(
        Row,
        r#"
        select seq as "seq!", event_id as "event_id!", event_type as "event_type!", attempts as "attempts!",
               last_error as error, extract(epoch from clock_timestamp() - created_at)::float8 as "waiting_seconds!",
               false as "is_dead!"
        from mesh.outbox where partition_key = $1
        union all
        select seq, event_id, event_type, attempts, error,
               extract(epoch from clock_timestamp() - created_at)::float8, true
        from mesh.outbox_dead where partition_key = $1
        order by 1
        limit $2
        "#,
        key,
        ROWS_MAX,
    )
    .fetch_all(connection)
    .await
}

async fn sent(connection: &mut PgConnection, event_id: Uuid) -> sqlx::Result<Option<(String, Fact)>> {
    let row = sqlx::query!(
        r#"
        select partition_key, event_type, attempts, stream_sequence,
               extract(epoch from sent_at - created_at)::float8 as "waiting_seconds!"
        from mesh.outbox_sent where event_id = $1
        order by sent_at desc limit 1
        "#,
        event_id,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| {
        let fact = Fact {
            event_id,
            event_type: row.event_type,
            place: Place::Sent,
            cause: Cause::Sent,
            held_by: None,
            attempts: row.attempts,
            last_error: None,
            waiting_seconds: row.waiting_seconds,
            stream_sequence: Some(row.stream_sequence),
        };
        (row.partition_key, fact)
    }))
}

/// What holds up each row of one key. A relay holds a key back as long as any row of it is given up.
fn causes(rows: &[Row], is_leased: bool) -> Vec<Fact> {
    let given_up = rows.iter().filter(|row| row.is_dead).min_by_key(|row| row.seq);
    let first = rows.iter().filter(|row| !row.is_dead).min_by_key(|row| row.seq);
    let cause = |row: &Row| match (given_up, first) {
        (Some(dead), _) if row.is_dead && dead.seq == row.seq => (Cause::GivenUp, None),
        (Some(dead), _) => (Cause::BehindGivenUp, Some(dead.event_id)),
        (None, Some(first)) if first.seq != row.seq => (Cause::Behind, Some(first.event_id)),
        _ if !is_leased => (Cause::NobodyPublishes, None),
        _ if row.attempts > 0 => (Cause::BackingOff, None),
        _ => (Cause::Next, None),
    };
    let fact = |row: &Row| {
        let (cause, held_by) = cause(row);
        Fact {
            event_id: row.event_id,
            event_type: row.event_type.clone(),
            place: if row.is_dead { Place::Dead } else { Place::Outbox },
            cause,
            held_by,
            attempts: row.attempts,
            last_error: row.error.clone(),
            waiting_seconds: row.waiting_seconds,
            stream_sequence: None,
        }
    };
    rows.iter().map(fact).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seq: i64, attempts: i32, is_dead: bool) -> Row {
        Row {
            seq,
            event_id: Uuid::from_u128(seq as u128),
            event_type: "t".to_owned(),
            attempts,
            error: None,
            waiting_seconds: 1.0,
            is_dead,
        }
    }

    fn told(rows: &[Row], is_leased: bool) -> Vec<(Cause, Option<u128>)> {
        let facts = causes(rows, is_leased);
        facts.into_iter().map(|fact| (fact.cause, fact.held_by.map(|id| id.as_u128()))).collect()
    }

    #[test]
    fn each_fact_of_a_key_says_what_it_waits_for() {
        use Cause::{BackingOff, Behind, BehindGivenUp, GivenUp, Next, NobodyPublishes};
        let waiting = [row(4, 0, false), row(7, 0, false)];
        assert_eq!(told(&waiting, true), [(Next, None), (Behind, Some(4))]);
        assert_eq!(told(&waiting, false), [(NobodyPublishes, None), (Behind, Some(4))]);
        assert_eq!(told(&[row(4, 2, false)], true), [(BackingOff, None)]);
        let dead = [row(4, 10, true), row(5, 10, true), row(7, 0, false)];
        assert_eq!(told(&dead, true), [(GivenUp, None), (BehindGivenUp, Some(4)), (BehindGivenUp, Some(4))]);
        // Returned, while a later one of its key is still given up.
        assert_eq!(told(&[row(4, 0, false), row(5, 10, true)], true), [(BehindGivenUp, Some(5)), (GivenUp, None)]);
        assert_eq!(told(&[], true), []);
    }
}
