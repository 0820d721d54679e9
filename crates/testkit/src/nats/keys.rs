//! The users of a server with their secrets.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use async_nats::ConnectOptions;
use nkeys::KeyPair;
use serde_json::{Value, json};

use super::options::{NatsIdentity, NatsUser};
use crate::error::{Error, Result};

/// The user that the test bed adds to a server with users, to create streams and to look at them.
pub(super) const ADMIN: &str = "testkit";

/// One user, ready to be written into a configuration and to connect.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    user: NatsUser,
    secret: Secret,
}

#[derive(Clone, Debug)]
enum Secret {
    Seed {
        public_key: String,
        file: PathBuf,
    },
    /// The caller keeps the seed.
    Elsewhere {
        public_key: String,
    },
    Password(String),
}

/// Makes the identities of all users, and of the test bed's own when there are any; seeds go to `directory`.
pub(super) fn identities(users: &[NatsUser], directory: &Path) -> Result<Vec<Identity>> {
    if users.is_empty() {
        return Ok(Vec::new());
    }
    fs::create_dir_all(directory).map_err(Error::io(format!("make {}", directory.display())))?;
    let admin = NatsUser::new(ADMIN).publish([">"]).subscribe([">"]);
    users.iter().chain([&admin]).map(|user| Identity::new(user, directory)).collect()
}

pub(super) fn find<'a>(identities: &'a [Identity], name: &str) -> Result<&'a Identity> {
    let found = identities.iter().find(|identity| identity.user.name == name);
    found.ok_or_else(|| Error::Unusable(format!("the NATS server was started without a user \"{name}\"")))
}

impl Identity {
    fn new(user: &NatsUser, directory: &Path) -> Result<Identity> {
        let secret = match &user.identity {
            NatsIdentity::PublicKey(public_key) => Secret::Elsewhere { public_key: public_key.clone() },
            NatsIdentity::Password(password) => Secret::Password(password.clone()),
            NatsIdentity::Generated => {
                let file = directory.join(format!("{}.nk", user.name));
                Secret::Seed { public_key: seed(&file)?.public_key(), file }
            }
        };
        Ok(Identity { user: user.clone(), secret })
    }

    /// The file with the seed.
    pub(super) fn file(&self) -> Result<&Path> {
        match &self.secret {
            Secret::Seed { file, .. } => Ok(file),
            _ => Err(Error::Unusable(format!("the key pair of \"{}\" was not made here", self.user.name))),
        }
    }

    /// Options to connect as this user.
    pub(super) fn connect_options(&self) -> Result<ConnectOptions> {
        let options = match &self.secret {
            Secret::Seed { file, .. } => {
                ConnectOptions::with_nkey(fs::read_to_string(file).map_err(Error::io("read a seed"))?.trim().to_owned())
            }
            Secret::Password(password) => {
                ConnectOptions::with_user_and_password(self.user.name.clone(), password.clone())
            }
            Secret::Elsewhere { .. } => self.file().map(|_| ConnectOptions::new())?,
        };
        Ok(match &self.user.inbox_prefix {
            Some(prefix) => options.custom_inbox_prefix(prefix),
            None => options,
        })
    }

    /// The entry of the server's configuration.
    pub(super) fn entry(&self) -> Value {
        let mut permissions = json!({
            "publish": allowed(&self.user.publish),
            "subscribe": allowed(&self.user.subscribe),
        });
        if self.user.allow_responses {
            permissions["allow_responses"] = json!(true);
        }
        match &self.secret {
            Secret::Seed { public_key, .. } | Secret::Elsewhere { public_key } => {
                json!({ "nkey": public_key, "permissions": permissions })
            }
            Secret::Password(password) => {
                json!({ "user": self.user.name, "password": password, "permissions": permissions })
            }
        }
    }
}

/// An empty list would allow everything.
fn allowed(subjects: &[String]) -> Value {
    if subjects.is_empty() { json!({ "deny": [">"] }) } else { json!({ "allow": subjects }) }
}

/// The key pair in `file`, made if need be, readable by its owner alone.
fn seed(file: &Path) -> Result<KeyPair> {
    if let Ok(text) = fs::read_to_string(file) {
        return KeyPair::from_seed(text.trim()).map_err(Error::nats(format!("read the seed in {}", file.display())));
    }
    let pair = KeyPair::new_user();
    let text = pair.seed().map_err(Error::nats("make a key pair"))?;
    // Put in place whole: a server that dies here leaves no half of a seed for the next one.
    let partial = file.with_extension("partial");
    let write = || {
        let _ = fs::remove_file(&partial);
        let mut out = fs::File::options().write(true).create_new(true).mode(0o600).open(&partial)?;
        writeln!(out, "{text}")?;
        fs::rename(&partial, file)
    };
    write().map_err(Error::io(format!("write {}", file.display())))?;
    Ok(pair)
}
