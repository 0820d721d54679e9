//! What an operation would do, before it does it: the exact set, and a token that is good for that set only.

mod plan;

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::Filter;
use super::operation::{Action, insert_preview};
use plan::{Known, Plan};

/// Letters that one operation takes at most.
const PICKED_MAX: i64 = 10_000;

/// What would be done to what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Preview {
    pub(super) action: Action,
    /// Good for this set for the time given; null when there is nothing to do.
    token: Option<Uuid>,
    valid_seconds: u32,
    /// The size of the set.
    eligible: usize,
    /// Of the set: not asked for, but before or behind a letter of the set in its key.
    included: usize,
    /// Of the set: discarded earlier, so that this undoes it.
    discarded: usize,
    /// Asked for and settled already: nothing is left to do.
    already_settled: usize,
    /// Asked for and older than what the inbox remembers: refused, since nothing would tell a repeat from the first.
    too_old: usize,
    /// Asked for and of a subscriber that this build does not have: refused.
    unknown_subscribers: BTreeMap<String, usize>,
    /// Asked for and behind a letter of their key that is refused.
    blocked: usize,
    /// More letters agree with what was asked for than one operation takes.
    more: bool,
}

/// Finds what agrees with `filter`, adds what has to go with it, and remembers the set under a token.
pub(crate) async fn preview(
    pool: &PgPool,
    action: Action,
    filter: &Filter,
    subscribers: &HashSet<&str>,
) -> sqlx::Result<Preview> {
    let mut rows = known(pool, filter).await?;
    let picked = rows.iter().filter(|row| row.picked).count();
    let more = picked > usize::try_from(PICKED_MAX).unwrap_or(usize::MAX);
    if more && let Some(last) = rows.iter().rposition(|row| row.picked) {
        rows.truncate(last);
    }
    let missing = filter.ids.as_ref().map_or(0, |ids| ids.len().saturating_sub(picked));
    let plan = match action {
        Action::Redrive => Plan::redrive(&rows, subscribers),
        Action::Discard | Action::Retry => Plan::discard(&rows),
    };
    let token = match plan.members.as_slice() {
        [] => None,
        members => Some(insert_preview(pool, action, members, &digest(&rows, members)).await?),
    };
    Ok(Preview {
        action,
        token,
        valid_seconds: super::operation::TOKEN_SECONDS,
        eligible: plan.members.len(),
        included: plan.included,
        discarded: plan.discarded,
        already_settled: plan.already_settled + missing,
        too_old: plan.too_old,
        unknown_subscribers: plan.unknown_subscribers,
        blocked: plan.blocked,
        more,
    })
}

/// The letters that agree with `filter`, and all others of their keys that wait, in the order of the stream.
async fn known(pool: &PgPool, filter: &Filter) -> sqlx::Result<Vec<Known>> {
    sqlx::query_as!(
        Known,
        r#"
        with picked as (
            select id, subscriber, partition_key
            from mesh.dead_letter
            where ($1::bigint[] is null or id = any ($1)) and ($2::text is null or subscriber = $2)
              and ($3::text is null or reason = $3) and state = any ($4) and ($5::text is null or event_type = $5)
              and ($6::text is null or partition_key = $6) and ($7::uuid is null or correlation_id = $7)
              and ($8::uuid is null or event_id = $8)
            order by stream_sequence, id
            limit $9
        ), keys as (
            select distinct subscriber, partition_key from picked
        )
        select d.id, d.subscriber, d.partition_key as key, d.state, d.reason, d.attempts,
               p.id is not null as "picked!",
               i.event_id is not null as "remembered!",
               i.event_id is not null and i.no_effect is distinct from 'dead_letter' as "settled!"
        from keys k
        join mesh.dead_letter d on d.subscriber = k.subscriber and d.partition_key = k.partition_key
        left join picked p on p.id = d.id
        left join mesh.inbox i on i.event_id = d.event_id and i.subscriber = d.subscriber
        where p.id is not null or d.state <> 'discarded'
        order by d.stream_sequence, d.id
        "#,
        filter.ids.as_deref(),
        filter.subscriber.as_deref(),
        filter.reason.as_deref(),
        &filter.states(),
        filter.event_type.as_deref(),
        filter.key.as_deref(),
        filter.flow,
        filter.event_id,
        PICKED_MAX + 1,
    )
    .fetch_all(pool)
    .await
}

/// What is known of the members, so that it can be told whether they are still what was shown.
fn digest(rows: &[Known], members: &[i64]) -> Vec<u8> {
    let members: HashSet<i64> = members.iter().copied().collect();
    let mut lines: Vec<String> = rows
        .iter()
        .filter(|row| members.contains(&row.id))
        .map(|row| line(row.id, &row.state, &row.reason, row.attempts))
        .collect();
    lines.sort_unstable();
    Sha256::digest(lines.concat()).to_vec()
}

fn line(id: i64, state: &str, reason: &str, attempts: i32) -> String {
    format!("{id} {state} {reason} {attempts}\n")
}

/// The same digest, of the members as they are now; locks them until the end of the transaction when `lock` is set.
pub(super) async fn digest_now(connection: &mut PgConnection, members: &[i64], lock: bool) -> sqlx::Result<Vec<u8>> {
    if lock {
        // One order for everybody, so that two who discard the same letters do not wait for each other.
        sqlx::query!("select id from mesh.dead_letter where id = any ($1) order by id for update", members)
            .fetch_all(&mut *connection)
            .await?;
    }
    let rows = sqlx::query!("select id, state, reason, attempts from mesh.dead_letter where id = any ($1)", members)
        .fetch_all(connection)
        .await?;
    let mut lines: Vec<String> = rows.iter().map(|row| line(row.id, &row.state, &row.reason, row.attempts)).collect();
    lines.sort_unstable();
    Ok(Sha256::digest(lines.concat()).to_vec())
}
