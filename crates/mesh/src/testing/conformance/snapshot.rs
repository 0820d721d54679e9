//! What a service holds: every row of its tables, and every fact in its outbox.

use std::collections::BTreeMap;
use std::fmt::Write;

use envelope::headers;
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

/// Most lines of a difference that are shown.
const SHOWN_MAX: usize = 8;

/// The rows of one moment, as text, in an order that means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Snapshot {
    exact: Vec<String>,
    /// Without what the database draws by itself: times, and numbers from sequences.
    stable: Vec<String>,
    /// Id and type of each fact in the outbox.
    said: Vec<(Uuid, String)>,
}

impl Snapshot {
    pub(super) async fn take(pool: &PgPool) -> sqlx::Result<Self> {
        let mut snapshot = Self { exact: Vec::new(), stable: Vec::new(), said: Vec::new() };
        snapshot.take_tables(pool).await?;
        snapshot.take_outbox(pool).await?;
        snapshot.exact.sort_unstable();
        snapshot.stable.sort_unstable();
        Ok(snapshot)
    }

    async fn take_tables(&mut self, pool: &PgPool) -> sqlx::Result<()> {
        let tables = sqlx::query!(
            r#"
            select format('%I.%I', n.nspname, c.relname) as "name!",
                   array(select a.attname::text
                         from pg_attribute a
                         left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
                         where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
                           and (a.attidentity <> '' or pg_get_expr(d.adbin, d.adrelid) like 'nextval(%'
                                or a.atttypid in ('timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype,
                                                  'time'::regtype, 'timetz'::regtype))) as "drawn!"
            from pg_class c
            join pg_namespace n on n.oid = c.relnamespace
            where c.relkind in ('r', 'p') and not c.relispartition and c.relname <> '_sqlx_migrations'
              and n.nspname not in ('mesh', 'information_schema') and n.nspname not like 'pg\_%'
            "#,
        )
        .fetch_all(pool)
        .await?;
        for table in tables {
            // The name is quoted by the database itself.
            let sql = format!("select to_jsonb(t)::text, (to_jsonb(t) - $1::text[])::text from {} t", table.name);
            let rows: Vec<(String, String)> =
                sqlx::query_as(AssertSqlSafe(sql)).bind(&table.drawn).fetch_all(pool).await?;
            for (exact, stable) in rows {
                self.exact.push(format!("{} {exact}", table.name));
                self.stable.push(format!("{} {stable}", table.name));
            }
        }
        Ok(())
    }

    async fn take_outbox(&mut self, pool: &PgPool) -> sqlx::Result<()> {
        let facts = sqlx::query!(
            r#"
            select event_id, subject, event_type, partition_key, key_version, headers, encode(payload, 'escape') as "body!"
            from mesh.outbox
            "#,
        )
        .fetch_all(pool)
        .await?;
        for fact in facts {
            let mut list: Vec<(String, String)> = serde_json::from_str(&fact.headers).unwrap_or_default();
            // The trace is the run's own.
            list.retain(|(name, _)| name != headers::CE_TRACEPARENT && name != headers::CE_TRACESTATE);
            let (key, version) = (fact.partition_key, fact.key_version);
            let text = format!("fact {key} {version} {} {} {} {list:?}", fact.event_id, fact.subject, fact.body);
            self.exact.push(text.clone());
            self.stable.push(text);
            self.said.push((fact.event_id, fact.event_type));
        }
        Ok(())
    }

    /// The types of the facts that were not there before.
    pub(super) fn said_since(&self, before: &Self) -> Vec<String> {
        self.said.iter().filter(|fact| !before.said.contains(fact)).map(|(_, event_type)| event_type.clone()).collect()
    }

    /// What is different now, on the same database.
    pub(super) fn difference(&self, now: &Self) -> Option<String> {
        difference(&self.exact, &now.exact)
    }

    /// What is different on another database.
    pub(super) fn difference_anew(&self, other: &Self) -> Option<String> {
        difference(&self.stable, &other.stable)
    }
}

/// What is in one list only: `-` in the first, `+` in the second.
fn difference(first: &[String], second: &[String]) -> Option<String> {
    let mut counts: BTreeMap<&str, isize> = BTreeMap::new();
    for row in first {
        *counts.entry(row).or_default() -= 1;
    }
    for row in second {
        *counts.entry(row).or_default() += 1;
    }
    counts.retain(|_, count| *count != 0);
    if counts.is_empty() {
        return None;
    }
    let mut text = String::new();
    for (row, count) in counts.iter().take(SHOWN_MAX) {
        let sign = if *count < 0 { '-' } else { '+' };
        let _ = write!(text, "\n    {sign} {row}");
    }
    let more = counts.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        let _ = write!(text, "\n    and {more} more");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn a_row_that_is_there_twice_is_a_difference() {
        let rows = |rows: &[&str]| rows.iter().map(|row| (*row).to_owned()).collect::<Vec<_>>();
        assert_eq!(difference(&rows(&["a", "b"]), &rows(&["b", "a"])), None);
        assert_eq!(difference(&rows(&["a"]), &rows(&["a", "a"])).as_deref(), Some("\n    + a"));
        assert_eq!(difference(&rows(&["a"]), &rows(&["b"])).as_deref(), Some("\n    - a\n    + b"));
    }
}
