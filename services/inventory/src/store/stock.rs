//! How much there is of each SKU.

use events::Sku;
use sqlx::PgConnection;

use super::changed;
use crate::domain::{Demand, Stock};

/// A row of `stock`.
#[derive(Debug)]
struct StockRow {
    sku: String,
    on_hand: i64,
    reserved: i64,
    version: i64,
}

impl StockRow {
    fn into_stock(self) -> sqlx::Result<Stock> {
        let Self { sku, on_hand, reserved, version } = self;
        let sku = Sku::try_from(sku).map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
        Ok(Stock { sku, on_hand, reserved, version })
    }
}

/// Reads the stock of one SKU.
///
/// # Errors
/// When the statement fails or the row is no stock.
pub async fn find(connection: &mut PgConnection, sku: &Sku) -> sqlx::Result<Option<Stock>> {
    let row =
        sqlx::query_as!(StockRow, "select sku, on_hand, reserved, version from stock where sku = $1", sku.as_str())
            .fetch_optional(connection)
            .await?;
    row.map(StockRow::into_stock).transpose()
}

/// Reads the stock of one SKU and keeps others from changing it until the transaction ends.
///
/// # Errors
/// Those of [`find`].
pub async fn lock(connection: &mut PgConnection, sku: &Sku) -> sqlx::Result<Option<Stock>> {
    let row = sqlx::query_as!(
        StockRow,
        "select sku, on_hand, reserved, version from stock where sku = $1 for update",
        sku.as_str()
    )
    .fetch_optional(connection)
    .await?;
    row.map(StockRow::into_stock).transpose()
}

/// Reads the stock of every demanded SKU that is kept, and keeps others from changing it until the transaction ends. The
/// locks are taken in SKU order, so two orders with the same SKUs queue up and never wait for each other.
///
/// # Errors
/// Those of [`find`].
pub async fn lock_demanded(connection: &mut PgConnection, demand: &Demand) -> sqlx::Result<Vec<Stock>> {
    let (skus, _) = columns(demand);
    let rows = sqlx::query_as!(
        StockRow,
        r#"
        select sku, on_hand, reserved, version
        from stock
        where sku = any($1::text[])
        order by sku
        for update
        "#,
        &skus as &[&str],
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(StockRow::into_stock).collect()
}

/// Sets every line aside, under the locks of [`lock_demanded`].
///
/// # Errors
/// When the statement fails: the table refuses to set aside more than there is. [`sqlx::Error::RowNotFound`] when a SKU is
/// not kept.
pub async fn reserve(connection: &mut PgConnection, demand: &Demand) -> sqlx::Result<()> {
    let (skus, quantities) = columns(demand);
    let done = sqlx::query!(
        r#"
        update stock s
        set reserved = s.reserved + d.quantity, version = s.version + 1, updated_at = now()
        from unnest($1::text[], $2::bigint[]) as d (sku, quantity)
        where s.sku = d.sku
        "#,
        &skus as &[&str],
        &quantities,
    )
    .execute(connection)
    .await?;
    changed(done.rows_affected(), skus.len())
}

/// Frees every line, under the locks of [`lock_demanded`].
///
/// # Errors
/// When the statement fails: the table refuses to free more than is set aside. [`sqlx::Error::RowNotFound`] when a SKU is
/// not kept.
pub async fn release(connection: &mut PgConnection, demand: &Demand) -> sqlx::Result<()> {
    let (skus, quantities) = columns(demand);
    let done = sqlx::query!(
        r#"
        update stock s
        set reserved = s.reserved - d.quantity, version = s.version + 1, updated_at = now()
        from unnest($1::text[], $2::bigint[]) as d (sku, quantity)
        where s.sku = d.sku
        "#,
        &skus as &[&str],
        &quantities,
    )
    .execute(connection)
    .await?;
    changed(done.rows_affected(), skus.len())
}

/// Stores the stock of a SKU after its first count.
///
/// # Errors
/// A unique violation when somebody counted the SKU for the first time at the same moment. Otherwise when the statement
/// fails.
pub async fn insert(connection: &mut PgConnection, stock: &Stock) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into stock (sku, on_hand, reserved, version) values ($1, $2, $3, $4)",
        stock.sku.as_str(),
        stock.on_hand,
        stock.reserved,
        stock.version,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores a new count of stock that this transaction has locked.
///
/// # Errors
/// When the statement fails; [`sqlx::Error::RowNotFound`] when `stock` is not the next version.
pub async fn update(connection: &mut PgConnection, stock: &Stock) -> sqlx::Result<()> {
    let done = sqlx::query!(
        "update stock set on_hand = $2, version = $3, updated_at = now() where sku = $1 and version + 1 = $3",
        stock.sku.as_str(),
        stock.on_hand,
        stock.version,
    )
    .execute(connection)
    .await?;
    changed(done.rows_affected(), 1)
}

/// At most `limit` SKUs after `after`, in SKU order.
///
/// # Errors
/// Those of [`find`].
pub async fn list(connection: &mut PgConnection, after: &str, limit: i64) -> sqlx::Result<Vec<Stock>> {
    let rows = sqlx::query_as!(
        StockRow,
        "select sku, on_hand, reserved, version from stock where sku > $1 order by sku limit $2",
        after,
        limit,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(StockRow::into_stock).collect()
}

/// The demand as one array per column.
fn columns(demand: &Demand) -> (Vec<&str>, Vec<i64>) {
    demand.lines().iter().map(|line| (line.sku.as_str(), i64::from(line.quantity))).unzip()
}

#[cfg(test)]
mod tests;
