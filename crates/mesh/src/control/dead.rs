//! Dead letters as an operator asks for them.

use serde::Deserialize;
use sqlx::PgPool;

use super::Desk;
use super::request::Refused;
use crate::dead_letter::{self, Action, Filter, Page, Preview, Shown};

/// Letters of a page, unless something else is asked for, and at most.
const LIMIT: u16 = 50;
const LIMIT_MAX: u16 = 200;

/// `dead.list`: a page of those that agree with the filter.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct List {
    filter: Filter,
    /// `next_cursor` of the page before.
    cursor: Option<i64>,
    limit: Option<u16>,
}

/// `dead.show`: one with everything about it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Show {
    id: i64,
}

/// `dead.preview`: what an action would do, and a token for it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Previewed {
    action: Action,
    #[serde(default)]
    filter: Filter,
}

pub(super) async fn list(pool: &PgPool, List { filter, cursor, limit }: List) -> Result<Page, Refused> {
    let limit = limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Refused::Bad(format!("`limit` is 1 to {LIMIT_MAX}")));
    }
    Ok(dead_letter::list(pool, &filter, cursor, limit).await?)
}

pub(super) async fn show(pool: &PgPool, Show { id }: Show) -> Result<Shown, Refused> {
    let shown = dead_letter::show(pool, id).await?;
    shown.ok_or_else(|| Refused::NotFound(format!("there is no dead letter {id}: it may be settled by now")))
}

pub(super) async fn preview(desk: &Desk, Previewed { action, filter }: Previewed) -> Result<Preview, Refused> {
    if action == Action::Retry {
        return Err(Refused::Bad("dead letters are redriven or discarded; `outbox.preview` is for retries".to_owned()));
    }
    Ok(dead_letter::preview(desk.mesh.pool(), action, &filter, &desk.redriver.subscribers()).await?)
}
