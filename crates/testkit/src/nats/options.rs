//! What a NATS server of a test may be asked to be.

use std::path::PathBuf;

/// Options of one server or of a cluster. The default is an open, durable server on free ports, in a directory that
/// vanishes with it.
#[derive(Clone, Debug, Default)]
pub struct NatsOptions {
    pub(super) home: Option<PathBuf>,
    pub(super) port: Option<u16>,
    pub(super) monitor_port: Option<u16>,
    pub(super) users: Vec<NatsUser>,
    pub(super) version: Option<String>,
    pub(super) default_sync: bool,
}

impl NatsOptions {
    /// An open server on free ports that syncs every message to disk before it acknowledges it.
    pub fn new() -> NatsOptions {
        NatsOptions::default()
    }

    /// Keeps streams, keys and configuration in this directory, which outlives the server and is used again by the next.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> NatsOptions {
        self.home = Some(directory.into());
        self
    }

    /// Listens for clients on this port of 127.0.0.1. A cluster always takes free ports.
    pub fn port(mut self, port: u16) -> NatsOptions {
        self.port = Some(port);
        self
    }

    /// Serves monitoring over HTTP on this port of 127.0.0.1. A cluster always takes free ports.
    pub fn monitor_port(mut self, port: u16) -> NatsOptions {
        self.monitor_port = Some(port);
        self
    }

    /// Admits these users and nobody else; without users everyone may do everything.
    pub fn users(mut self, users: impl IntoIterator<Item = NatsUser>) -> NatsOptions {
        self.users.extend(users);
        self
    }

    /// Runs exactly this version, `"2.14.6"` for instance, installed if need be.
    pub fn version(mut self, version: impl Into<String>) -> NatsOptions {
        self.version = Some(version.into());
        self
    }

    /// Leaves the server's own `sync_interval` of two minutes: a power failure may then lose acknowledged messages.
    pub fn default_sync(mut self) -> NatsOptions {
        self.default_sync = true;
        self
    }
}

/// How a user proves who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NatsIdentity {
    /// A key pair made for the server; the seed is in [`Nats::creds_file`](super::Nats::creds_file).
    Generated,
    /// The public nkey of a pair that the caller keeps.
    PublicKey(String),
    /// A password, with the user's name.
    Password(String),
}

/// One user of a server and what it may do: nothing, until subjects are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsUser {
    /// The name, which also names the file of its seed.
    pub name: String,
    /// How the user proves who it is.
    pub identity: NatsIdentity,
    /// The subjects that it may publish to; none is nothing.
    pub publish: Vec<String>,
    /// The subjects that it may subscribe to; none is nothing.
    pub subscribe: Vec<String>,
    /// Whether it may answer requests, on whatever inbox they name.
    pub allow_responses: bool,
    /// The prefix of its inboxes, which [`Nats::connect`](super::Nats::connect) sets; the client's default is `_INBOX`.
    pub inbox_prefix: Option<String>,
}

impl NatsUser {
    /// A user with a generated key pair that may do nothing yet.
    pub fn new(name: impl Into<String>) -> NatsUser {
        NatsUser {
            name: name.into(),
            identity: NatsIdentity::Generated,
            publish: Vec::new(),
            subscribe: Vec::new(),
            allow_responses: false,
            inbox_prefix: None,
        }
    }

    /// Sets how the user proves who it is.
    pub fn identity(mut self, identity: NatsIdentity) -> NatsUser {
        self.identity = identity;
        self
    }

    /// Allows publishing to these subjects.
    pub fn publish<S: Into<String>>(mut self, subjects: impl IntoIterator<Item = S>) -> NatsUser {
        self.publish.extend(subjects.into_iter().map(Into::into));
        self
    }

    /// Allows subscribing to these subjects.
    pub fn subscribe<S: Into<String>>(mut self, subjects: impl IntoIterator<Item = S>) -> NatsUser {
        self.subscribe.extend(subjects.into_iter().map(Into::into));
        self
    }

    /// Allows answering requests.
    pub fn allow_responses(mut self) -> NatsUser {
        self.allow_responses = true;
        self
    }

    /// Sets the prefix of the user's inboxes. The permission to subscribe to them is not implied.
    pub fn inbox_prefix(mut self, prefix: impl Into<String>) -> NatsUser {
        self.inbox_prefix = Some(prefix.into());
        self
    }
}
