//! `nats permissions`: who may do what, derived from the catalogue.

use std::fmt;

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::declaration::{User, Users};
use crate::outcome::Outcome;
use crate::output::Format;
use crate::permissions;
use crate::streams::{self, Folder};

/// What to do with users.
#[derive(Debug, Clone, Subcommand)]
pub enum Verb {
    /// Prints nats/users.json as the catalogue asks for it: the least that each service needs
    Permissions(Permissions),
}

/// What to do with the result.
#[derive(Debug, Clone, Args)]
pub struct Permissions {
    /// Compare with the committed file instead; ends with 1 when it is different
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    folder: Folder,
}

/// Users of the file that are not as the catalogue asks.
#[derive(Debug, Serialize)]
struct Comparison {
    differing_users: Vec<String>,
}

/// Runs the verb.
///
/// # Errors
/// When the catalogue or the declaration cannot be read.
pub fn run(verb: Verb, format: Format) -> anyhow::Result<Outcome> {
    let Verb::Permissions(Permissions { check, folder }) = verb;
    let declaration = streams::load(folder.dir.as_deref())?;
    let buckets: Vec<String> = declaration.buckets.keys().cloned().collect();
    let users = permissions::users(&events::catalogue::services()?, declaration.stream_name(), &buckets);
    if !check {
        // A file for the server's operators either way.
        Format::Json.print(&users)?;
        return Ok(Outcome::Yes);
    }
    let comparison = Comparison { differing_users: differing(&users.users, &declaration.users) };
    format.print(&comparison)?;
    Ok(Outcome::from_answer(comparison.differing_users.is_empty()))
}

/// The names of users that are in one list only, or not the same in both.
fn differing(derived: &[User], committed: &[User]) -> Vec<String> {
    let odd = |one: &[User], other: &[User]| -> Vec<String> {
        one.iter().filter(|user| !other.contains(user)).map(|user| user.name.clone()).collect()
    };
    let mut names = odd(derived, committed);
    names.extend(odd(committed, derived));
    names.sort();
    names.dedup();
    names
}

impl fmt::Display for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.users.iter().map(|user| user.name.as_str()).collect();
        f.write_str(&names.join("\n"))
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.differing_users.as_slice() {
            [] => f.write_str("nats/users.json is as the catalogue asks"),
            names => write!(f, "nats/users.json differs from the catalogue in: {}", names.join(", ")),
        }
    }
}
