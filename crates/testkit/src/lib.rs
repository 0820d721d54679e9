//! Throwaway PostgreSQL and NATS servers, child processes that cannot be left behind, a chaos proxy, and waits.
//!
//! Everything here starts real servers in private directories on private ports of 127.0.0.1, and takes them away again:
//! when the value is dropped, and also when the test that holds it is killed (see [`process`]). The programs come from the
//! `PATH`, or are installed once (see [`install`]).
//!
//! | | for |
//! |---|---|
//! | [`database()`] | a database of one test, cloned in milliseconds from a template with the migrations |
//! | [`Postgres`] | a server of one's own, to be killed and restarted |
//! | [`Nats`], [`NatsCluster`] | one nats-server or three, with users, streams and consumers from files |
//! | [`ChildProcess`] | any program, with its output kept, to be stopped, killed, asked to finish |
//! | [`Proxy`] | a link that is slow, silent, cut or refused |
//! | [`wait::until`] | waiting on a predicate, with an error that says what was seen last |
//!
//! ```no_run
//! use std::time::Duration;
//! use testkit::{ChildProcess, Nats, NatsOptions, Program};
//!
//! # async fn example() -> testkit::Result<()> {
//! let nats = Nats::start(NatsOptions::new()).await?;
//! nats.apply("nats").await?;
//! let database = testkit::database("orders", |url| async move {
//!     let pool = sqlx::PgPool::connect(&url).await?;
//!     sqlx::raw_sql("create table orders (order_id uuid primary key)").execute(&pool).await?;
//!     Ok::<_, sqlx::Error>(())
//! })
//! .await?;
//! let orders = Program::new("orders", "target/debug/orders").env("ORDERS_NATS", nats.url()).env("ORDERS_DB", database.url());
//! let orders = ChildProcess::spawn(orders)?;
//! testkit::wait::until("a line of output", Duration::from_secs(10), || async {
//!     if orders.log_tail(1).is_empty() { Err("nothing") } else { Ok(()) }
//! })
//! .await?;
//! # Ok(())
//! # }
//! ```

mod account;
mod error;
pub mod install;
pub mod nats;
mod port;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod scratch;
pub mod smtp;
pub mod wait;

pub use error::{Error, Result};
pub use nats::{Nats, NatsCluster, NatsIdentity, NatsOptions, NatsUser};
pub use postgres::{Postgres, PostgresOptions, TestDatabase, database};
pub use process::{ChildProcess, Program};
pub use proxy::{Direction, Proxy};
pub use smtp::Smtp;
