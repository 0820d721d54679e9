//! What this service is told from outside, beside the runtime's `MESH_` variables.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

const PREFIX: &str = "NOTIFICATIONS_";
const SMTP_URL: &str = "NOTIFICATIONS_SMTP_URL";
const FILE_DIR: &str = "NOTIFICATIONS_FILE_DIR";
const FROM: &str = "NOTIFICATIONS_FROM";
const CUSTOMER_DOMAIN: &str = "NOTIFICATIONS_CUSTOMER_DOMAIN";
const SMTP_TIMEOUT: &str = "NOTIFICATIONS_SMTP_TIMEOUT_SECONDS";
const ALL: [&str; 5] = [SMTP_URL, FILE_DIR, FROM, CUSTOMER_DOMAIN, SMTP_TIMEOUT];

/// How long a step of the conversation with the mail server may take, unless it is set.
const SMTP_TIMEOUT_DEFAULT: Duration = Duration::from_secs(20);
const SMTP_TIMEOUT_SECONDS_MAX: u64 = 300;

/// The checked settings.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where mails go.
    pub transport: Transport,
    /// Who writes, `Name <address>` or an address.
    pub from: String,
    /// Facts carry no address: a customer is written to at `<customer id>@<this domain>`, where a mail server of the shop
    /// knows the address behind it.
    pub customer_domain: String,
    /// How long a step of the conversation with the mail server may take.
    pub smtp_timeout: Duration,
}

/// Where mails go.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// To a mail server, as `smtp://user:password@host:port` or `smtps://..`; `?tls=required` asks for STARTTLS.
    Smtp(String),
    /// Into files of this directory, one for each fact. For local runs.
    Files(PathBuf),
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Mails go either to a server or into files.
    #[error("set one of {SMTP_URL} and {FILE_DIR}")]
    Transport,
    /// There is no default for it.
    #[error("{0} is required")]
    Missing(&'static str),
    /// It is set to something else. What was given stays out of the message, since it may hold a password.
    #[error("{variable} cannot be used: {problem}")]
    Unusable {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Nothing reads it; almost always a typing mistake.
    #[error("{0}: unknown variable; there are {all}", all = ALL.join(", "))]
    Unknown(String),
}

impl fmt::Debug for Settings {
    /// Without the transport's URL, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("from", &self.from)
            .field("customer_domain", &self.customer_domain)
            .field("smtp_timeout", &self.smtp_timeout)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// Reads the environment of the process.
    ///
    /// # Errors
    /// When a variable is missing, or set to something that cannot be used.
    pub fn from_environment() -> Result<Self, SettingsError> {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        Self::from_variables(std::env::vars_os().map(|(name, value)| (text(name), text(value))))
    }

    fn from_variables(variables: impl IntoIterator<Item = (String, String)>) -> Result<Self, SettingsError> {
        let ours: Vec<_> = variables.into_iter().filter(|(name, _)| name.starts_with(PREFIX)).collect();
        if let Some((unknown, _)) = ours.iter().find(|(name, _)| !ALL.contains(&name.as_str())) {
            return Err(SettingsError::Unknown(unknown.clone()));
        }
        let given = |wanted: &str| {
            let found = ours.iter().find(|(name, value)| name == wanted && !value.is_empty());
            found.map(|(_, value)| value.clone())
        };
        let required = |wanted: &'static str| given(wanted).ok_or(SettingsError::Missing(wanted));
        let transport = match (given(SMTP_URL), given(FILE_DIR)) {
            (Some(url), None) => Transport::Smtp(url),
            (None, Some(directory)) => Transport::Files(directory.into()),
            _ => return Err(SettingsError::Transport),
        };
        let smtp_timeout = given(SMTP_TIMEOUT).map_or(Ok(SMTP_TIMEOUT_DEFAULT), |text| seconds(&text))?;
        Ok(Self { transport, from: required(FROM)?, customer_domain: required(CUSTOMER_DOMAIN)?, smtp_timeout })
    }
}

fn seconds(text: &str) -> Result<Duration, SettingsError> {
    let seconds = text.parse().ok().filter(|seconds| (1..=SMTP_TIMEOUT_SECONDS_MAX).contains(seconds));
    let problem = format!("{text:?} is no number of seconds from 1 to {SMTP_TIMEOUT_SECONDS_MAX}");
    seconds.map(Duration::from_secs).ok_or(SettingsError::Unusable { variable: SMTP_TIMEOUT, problem })
}

impl SettingsError {
    pub(crate) fn from_address(problem: impl fmt::Display) -> Self {
        Self::Unusable { variable: FROM, problem: problem.to_string() }
    }

    pub(crate) fn customer_domain(problem: impl fmt::Display) -> Self {
        Self::Unusable { variable: CUSTOMER_DOMAIN, problem: problem.to_string() }
    }

    pub(crate) fn smtp_url(problem: impl fmt::Display) -> Self {
        Self::Unusable { variable: SMTP_URL, problem: problem.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPLETE: [(&str, &str); 3] =
        [(SMTP_URL, "smtp://shop:hunter2@mail:25"), (FROM, "Shop <shop@shop.example>"), (CUSTOMER_DOMAIN, "c.example")];

    fn settings(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        Settings::from_variables(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn three_variables_are_enough_and_no_password_prints() {
        let complete = settings(&COMPLETE).unwrap();
        assert_eq!(complete.smtp_timeout, Duration::from_secs(20));
        assert!(!format!("{complete:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_missing_unusable_or_unknown_is_named() {
        let with = |more: &[(&'static str, &'static str)]| settings(&[&COMPLETE[..], more].concat());
        assert_eq!(settings(&COMPLETE[1..]), Err(SettingsError::Transport));
        assert_eq!(with(&[(FILE_DIR, "mails")]), Err(SettingsError::Transport), "one of the two");
        assert_eq!(settings(&COMPLETE[..2]), Err(SettingsError::Missing(CUSTOMER_DOMAIN)));
        for text in ["0", "301", "x"] {
            let error = with(&[(SMTP_TIMEOUT, text)]).unwrap_err().to_string();
            assert!(error.contains(SMTP_TIMEOUT) && error.contains(text), "{error}");
        }
        let misspelt = FROM.replace("FROM", "FORM");
        let unknown = settings(&[(&misspelt, "x")]).unwrap_err().to_string();
        assert!(unknown.starts_with(&format!("{misspelt}: unknown variable")), "{unknown}");
    }
}
