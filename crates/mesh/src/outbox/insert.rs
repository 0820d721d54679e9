//! The one statement that turns staged facts into outbox rows.

use std::collections::HashMap;

use sqlx::PgConnection;
use uuid::Uuid;

use super::StagedFact;

/// Inserts the facts of one transaction, in order.
///
/// The upsert of `key_version` takes the row lock of each key (in key order, so that two transactions cannot deadlock on
/// it) before any `seq` is drawn; the sort by position comes after that join. For one key, `seq` order is therefore lock
/// order, which is commit order.
pub(crate) async fn insert(connection: &mut PgConnection, facts: &[StagedFact]) -> sqlx::Result<()> {
    let columns = Columns::from_facts(facts);
    sqlx::query!(
        r#"
        with staged as (
            select *
            from unnest($1::smallint[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::bytea[])
                 with ordinality
                 as s (bucket_group, event_id, subject, event_type, partition_key, later, headers, payload, position)
        ), bumped as (
            insert into mesh.key_version as k (partition_key, version)
            select partition_key, count(*) from staged group by partition_key order by partition_key
            on conflict (partition_key) do update set version = k.version + excluded.version
            returning partition_key, version
        )
        insert into mesh.outbox
            (bucket_group, event_id, subject, event_type, partition_key, key_version, headers, payload)
        select s.bucket_group, s.event_id, s.subject, s.event_type, s.partition_key, b.version - s.later, s.headers, s.payload
        from staged s join bumped b on b.partition_key = s.partition_key
        order by s.position
        "#,
        &columns.groups,
        &columns.ids,
        &columns.subjects as &[&str],
        &columns.types as &[&str],
        &columns.keys as &[&str],
        &columns.later,
        &columns.headers as &[&str],
        &columns.payloads as &[&[u8]],
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The facts as one array per column.
#[derive(Default)]
struct Columns<'a> {
    groups: Vec<i16>,
    ids: Vec<Uuid>,
    subjects: Vec<&'a str>,
    types: Vec<&'a str>,
    keys: Vec<&'a str>,
    /// How many facts of the same key follow in this transaction: the last one gets the key's new version.
    later: Vec<i64>,
    headers: Vec<&'a str>,
    payloads: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
    fn from_facts(facts: &'a [StagedFact]) -> Self {
        let mut columns = Self::default();
        let mut remaining: HashMap<&str, i64> = HashMap::new();
        for fact in facts {
            *remaining.entry(&fact.key).or_default() += 1;
        }
        for fact in facts {
            let later = remaining.entry(&fact.key).and_modify(|count| *count -= 1).or_default();
            columns.groups.push(fact.bucket_group);
            columns.ids.push(fact.event_id);
            columns.subjects.push(&fact.subject);
            columns.types.push(&fact.event_type);
            columns.keys.push(&fact.key);
            columns.later.push(*later);
            columns.headers.push(&fact.headers);
            columns.payloads.push(&fact.payload);
        }
        columns
    }
}
