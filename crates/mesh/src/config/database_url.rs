//! The address of a database, with a password that no log shows.

use std::fmt;
use std::str::FromStr;

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;

/// A PostgreSQL URL. Its debug form names the place and hides the rest.
#[derive(Clone)]
pub struct DatabaseUrl(PgConnectOptions);

/// How long a transaction may stand still inside before the server ends it, in milliseconds. A process that is stopped
/// or cut off must not hold the lock of an aggregate for longer than a fact takes to be delivered elsewhere.
const IDLE_IN_TRANSACTION_MS: &str = "30000";

impl DatabaseUrl {
    /// How to connect, known to the server as `application_name`.
    #[must_use]
    pub fn connect_options(&self, application_name: &str) -> PgConnectOptions {
        self.0
            .clone()
            .application_name(application_name)
            // The client asks after every statement whether the log wants it. With one filter for lines and one for spans,
            // a refusal is remembered by the thread and silences the next span, and with it the trace of an order.
            .disable_statement_logging()
            .options([("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_MS)])
    }
}

impl FromStr for DatabaseUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The reason of the parser is left out: it may quote what it could not read, and that may be the password.
        let known = text.starts_with("postgres://") || text.starts_with("postgresql://");
        let options = text.parse().ok().filter(|_| known);
        options.map(Self).ok_or("expected postgres://user:password@host:port/database")
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = self.0.get_database().unwrap_or("");
        write!(f, "postgres://***@{}:{}/{database}", self.0.get_host(), self.0.get_port())
    }
}
