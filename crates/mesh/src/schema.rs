//! The tables: brought up to date by `migrate`, only looked at by everything else.
//!
//! Two histories live in one database: the runtime's own in `mesh._sqlx_migrations`, the service's in its own table.
//! Migrations only ever expand, so a build runs on its own schema and on any newer one; that is what makes a rollback of
//! the program possible without one of the data.

use std::collections::BTreeMap;

use sqlx::migrate::{Migrate, MigrateError, Migration, Migrator};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

/// The runtime's own tables.
pub(crate) static MESH: Migrator = sqlx::migrate!("../../migrations/mesh");

/// Namespace of the advisory lock that serialises migrations.
const LOCK: &str = "mesh/migrate";

/// Why a database cannot be used or brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The build needs migrations that were not run.
    #[error("the schema is older than this build: {} not applied; run `{service} migrate` first", .pending.join(", "))]
    Older {
        /// The service whose `migrate` helps.
        service: &'static str,
        /// The missing migrations by number and name.
        pending: Vec<String>,
    },
    /// A migration was edited after it had been applied.
    #[error("migration {migration} was changed after it was applied to this database")]
    Changed {
        /// Its number and name.
        migration: String,
    },
    /// A migration could not be applied.
    #[error("a migration failed")]
    Migrate(#[from] MigrateError),
    /// The database cannot be reached or refuses.
    #[error("the schema cannot be looked at")]
    Database(#[from] sqlx::Error),
}

/// Brings the runtime's tables and then the service's up to date. Any number of processes may do it at once.
///
/// A schema that is newer than the build is left as it is: after a rollback the older `migrate` has nothing to do.
///
/// # Errors
/// [`SchemaError`]. Migrations that were applied before the failing one stay applied.
pub(crate) async fn migrate(options: &PgConnectOptions, service: &Migrator) -> Result<(), SchemaError> {
    // The library's own lock belongs to a session, and a pooler in transaction mode hands that session to others. So
    // the lock is one of a transaction, held open on a connection that does nothing else.
    let mut holder = PgConnection::connect_with(options).await?;
    let mut lock = holder.begin().await?;
    sqlx::query("set local idle_in_transaction_session_timeout = 0").execute(&mut *lock).await?;
    sqlx::query!("select pg_advisory_xact_lock(hashtextextended($1, 0))", LOCK).execute(&mut *lock).await?;
    let mut connection = PgConnection::connect_with(options).await?;
    for migrator in [&MESH, service] {
        lenient(migrator).run_direct(None, &mut connection, false).await?;
    }
    connection.close().await?;
    lock.commit().await?;
    holder.close().await?;
    Ok(())
}

/// The same migrations without the session lock, and content with a database that knows more of them.
fn lenient(migrator: &Migrator) -> Migrator {
    Migrator {
        migrations: migrator.migrations.clone(),
        ignore_missing: true,
        locking: false,
        no_tx: migrator.no_tx,
        table_name: migrator.table_name.clone(),
        create_schemas: migrator.create_schemas.clone(),
    }
}

/// Whether this build can run on the database. Warns when the schema is newer, and when commits may be lost.
///
/// # Errors
/// [`SchemaError::Older`], [`SchemaError::Changed`], or that the database cannot be asked.
pub(crate) async fn check(
    connection: &mut PgConnection,
    service: &'static str,
    migrator: &Migrator,
) -> Result<(), SchemaError> {
    let mut pending = Vec::new();
    for migrator in [&MESH, migrator] {
        let applied = applied(connection, migrator).await?;
        let mut needed = migrator.iter().filter(|migration| !migration.migration_type.is_down_migration());
        for migration in &mut needed {
            match applied.get(&migration.version) {
                None => pending.push(title(migration)),
                Some(checksum) if *checksum != *migration.checksum => {
                    return Err(SchemaError::Changed { migration: title(migration) });
                }
                Some(_) => {}
            }
        }
        let newer = applied.keys().filter(|version| !migrator.version_exists(**version)).count();
        if newer > 0 {
            tracing::warn!(newer, table = %migrator.table_name, "the schema is newer than this build");
        }
    }
    warn_of_lost_commits(connection).await?;
    if pending.is_empty() { Ok(()) } else { Err(SchemaError::Older { service, pending }) }
}

/// Without synchronous commits a crash of the server undoes transactions whose facts may be in the stream already.
async fn warn_of_lost_commits(connection: &mut PgConnection) -> Result<(), SchemaError> {
    let setting = sqlx::query_scalar!(r#"select current_setting('synchronous_commit') as "setting!""#)
        .fetch_one(&mut *connection)
        .await?;
    if setting == "off" {
        tracing::warn!(synchronous_commit = setting, "a crash of the database may undo what was published");
    } else {
        tracing::debug!(synchronous_commit = setting, "commits survive a crash of the database");
    }
    Ok(())
}

fn title(migration: &Migration) -> String {
    format!("{:04} {}", migration.version, migration.description)
}

/// Checksums by version; none when the history was never begun.
async fn applied(connection: &mut PgConnection, migrator: &Migrator) -> Result<BTreeMap<i64, Vec<u8>>, SchemaError> {
    let table: &str = &migrator.table_name;
    let exists = sqlx::query_scalar!(r#"select to_regclass($1) is not null as "exists!""#, table)
        .fetch_one(&mut *connection)
        .await?;
    if !exists {
        return Ok(BTreeMap::new());
    }
    let applied = connection.list_applied_migrations(table).await?;
    Ok(applied.into_iter().map(|migration| (migration.version, migration.checksum.into_owned())).collect())
}

#[cfg(test)]
mod tests;
