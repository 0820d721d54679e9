//! The query metadata in each crate's `.sqlx`, from a throwaway database with the migrations.
//!
//! The macros of sqlx describe every query to a live server when they may, and write what they learn into
//! `SQLX_OFFLINE_DIR`. So a crate is compiled against a fresh database, and what was written is its metadata. One database
//! and one compilation for each crate: the runtime's queries and a service's are about different schemas, and only the
//! variable of the crate in hand is set.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use sqlx::migrate::Migrator;
use sqlx::{Connection, PgConnection};
use testkit::{Postgres, PostgresOptions};

use crate::tree;

mod touch;

use touch::Touched;

/// What to write.
#[derive(Debug, clap::Args)]
pub(crate) struct SqlxPrepare {
    /// Only compare; end with 1 when metadata is missing, different or left over
    #[arg(long)]
    check: bool,
    /// The packages to do; all of them when none is named
    #[arg(value_name = "PACKAGE", value_parser = PACKAGES.map(|package| package.name))]
    packages: Vec<String>,
}

/// A package with checked queries.
#[derive(Debug, Clone, Copy)]
struct Package {
    name: &'static str,
    folder: &'static str,
    /// Its migrations, which run behind the runtime's.
    migrations: Option<&'static str>,
    /// Features that more queries are behind.
    features: &'static str,
}

/// The runtime first: the services build on it.
const PACKAGES: [Package; 4] = [
    Package { name: "mesh", folder: "crates/mesh", migrations: None, features: "testing" },
    Package { name: "orders", folder: "services/orders", migrations: Some("migrations/orders"), features: "" },
    Package { name: "payments", folder: "services/payments", migrations: Some("migrations/payments"), features: "" },
    Package { name: "inventory", folder: "services/inventory", migrations: Some("migrations/inventory"), features: "" },
];

/// File name to content.
type Metadata = BTreeMap<String, String>;

impl SqlxPrepare {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let outdated = runtime.block_on(self.prepare())?;
        anyhow::ensure!(
            outdated.is_empty(),
            "{}\nthe query metadata is not what the sources and migrations say: run `cargo xtask sqlx-prepare`",
            outdated.join("\n")
        );
        Ok(())
    }

    /// Returns what is wrong, if it was only to be looked at.
    async fn prepare(&self) -> anyhow::Result<Vec<String>> {
        let postgres = Postgres::start(PostgresOptions::new().without_fsync()).await?;
        let mut outdated = Vec::new();
        for package in PACKAGES {
            if !self.packages.is_empty() && !self.packages.iter().any(|name| name == package.name) {
                continue;
            }
            let database = migrated(&postgres, package).await?;
            let fresh = described(package, &database)?;
            let folder = tree::root().join(package.folder).join(".sqlx");
            let committed = read(&folder)?;
            if self.check {
                outdated.extend(differences(package.name, &committed, &fresh));
            } else {
                write(&folder, &committed, &fresh)?;
            }
            println!("{}: {} queries", package.name, fresh.len());
        }
        Ok(outdated)
    }
}

/// Makes a database with the tables that the package's queries are about, and returns its URL.
async fn migrated(postgres: &Postgres, package: Package) -> anyhow::Result<String> {
    postgres.execute(&format!("create database {}", package.name)).await?;
    let url = postgres.url(package.name);
    let mut connection = PgConnection::connect(&url).await?;
    let mut mesh = migrations("migrations/mesh").await?;
    mesh.create_schema("mesh");
    mesh.dangerous_set_table_name("mesh._sqlx_migrations");
    mesh.run(&mut connection).await.context("the migrations in migrations/mesh")?;
    if let Some(folder) = package.migrations {
        let own = migrations(folder).await?;
        own.run(&mut connection).await.with_context(|| format!("the migrations in {folder}"))?;
    }
    connection.close().await?;
    Ok(url)
}

async fn migrations(folder: &str) -> anyhow::Result<Migrator> {
    let path = tree::root().join(folder);
    Migrator::new(path.as_path()).await.with_context(|| format!("cannot read {folder}"))
}

/// Compiles the package against the database, and returns what its macros wrote.
fn described(package: Package, database: &str) -> anyhow::Result<Metadata> {
    let written = testkit::scratch::dir("sqlx")?;
    let variable = format!("SCHEMA_{}_DATABASE_URL", package.name.to_uppercase());
    // Macros run again only for sources that look new.
    let touched = Touched::new(&tree::root().join(package.folder).join("src/lib.rs"))?;
    let mut check =
        tree::cargo(&["check", "--quiet", "--lib", "--package", package.name, "--features", package.features]);
    check.env("SQLX_OFFLINE", "false").env("SQLX_OFFLINE_DIR", written.path()).env(variable, database);
    tree::run(&mut check)?;
    touched.restore()?;
    read(written.path())
}

fn read(folder: &Path) -> anyhow::Result<Metadata> {
    let mut found = Metadata::new();
    if !folder.is_dir() {
        return Ok(found);
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("query-") {
            let text = std::fs::read_to_string(entry.path());
            found.insert(name, text.with_context(|| format!("cannot read {}", entry.path().display()))?);
        }
    }
    Ok(found)
}

fn write(folder: &Path, committed: &Metadata, fresh: &Metadata) -> anyhow::Result<()> {
    let write = || {
        std::fs::create_dir_all(folder)?;
        for name in committed.keys().filter(|name| !fresh.contains_key(*name)) {
            std::fs::remove_file(folder.join(name))?;
        }
        for (name, text) in fresh.iter().filter(|(name, text)| committed.get(*name) != Some(text)) {
            std::fs::write(folder.join(name), text)?;
        }
        std::io::Result::Ok(())
    };
    write().with_context(|| format!("cannot write {}", folder.display()))
}

/// What would have to change in the committed metadata, one line each.
fn differences(package: &str, committed: &Metadata, fresh: &Metadata) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in fresh {
        match committed.get(name) {
            None => found.push(format!("{package}: missing {name}: {}", statement(text))),
            Some(other) if other != text => found.push(format!("{package}: different {name}: {}", statement(text))),
            Some(_) => {}
        }
    }
    let left_over = committed.iter().filter(|(name, _)| !fresh.contains_key(*name));
    found.extend(left_over.map(|(name, text)| format!("{package}: left over {name}: {}", statement(text))));
    found
}

/// The beginning of a query, to be recognised by.
fn statement(metadata: &str) -> String {
    let metadata: serde_json::Value = serde_json::from_str(metadata).unwrap_or_default();
    let words: Vec<&str> = metadata["query"].as_str().unwrap_or_default().split_whitespace().collect();
    words.join(" ").chars().take(60).collect()
}

#[cfg(test)]
mod tests;
