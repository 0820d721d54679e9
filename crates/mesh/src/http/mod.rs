//! The HTTP surface: operations with idempotency keys, problem details, lists with cursors, and what operators ask for.

mod admin;
mod body;
mod cursor;
mod idempotency;
mod layers;
mod locate;
mod operation;
mod path;
mod problem;
mod query;
mod reply;
mod server;
mod transaction;

pub use body::NoBody;
pub use cursor::{Cursor, Limit, Page};
pub use operation::{Operation, post, put};
pub use path::Path;
pub use problem::{FieldError, Problem};
pub use query::Query;
pub use reply::Reply;
pub(crate) use server::{router, serve};

/// Largest request body, in bytes.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
