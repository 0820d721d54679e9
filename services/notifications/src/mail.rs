//! Mails, and how they leave: to a mail server, or into files.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::{AsyncSmtpTransport, Error};
use lettre::{Address, AsyncTransport, Tokio1Executor};
use mesh::Failure;
use uuid::Uuid;

use crate::domain::{Notice, body, subject};
use crate::settings::{Settings, SettingsError, Transport};

/// Steps of one conversation with a mail server: connection, greeting, STARTTLS and its greeting, login, sender,
/// recipient, text and its end, each with the time of one.
const STEPS: u32 = 9;

/// Sends mails.
#[derive(Debug)]
pub struct Post {
    transport: Outgoing,
    from: Mailbox,
    customer_domain: String,
    timeout: Duration,
}

#[derive(Debug)]
enum Outgoing {
    Smtp(AsyncSmtpTransport<Tokio1Executor>),
    Files(PathBuf),
}

impl Post {
    /// From settings.
    ///
    /// # Errors
    /// When an address or the URL of the mail server cannot be used.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let from: Mailbox = settings.from.parse().map_err(SettingsError::from_address)?;
        address(Uuid::nil(), &settings.customer_domain).map_err(SettingsError::customer_domain)?;
        let transport = match settings.transport {
            Transport::Smtp(url) => {
                let server = AsyncSmtpTransport::<Tokio1Executor>::from_url(&url).map_err(SettingsError::smtp_url)?;
                Outgoing::Smtp(server.timeout(Some(settings.smtp_timeout)).build())
            }
            Transport::Files(directory) => Outgoing::Files(directory),
        };
        let timeout = settings.smtp_timeout * STEPS;
        Ok(Self { transport, from, customer_domain: settings.customer_domain, timeout })
    }

    /// How long sending one mail may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sends the mail of a notice. Sent again, it is the same mail with the same id.
    ///
    /// # Errors
    /// [`Failure::Reject`] when the server refuses it for good, [`Failure::Retry`] when it refuses it for now,
    /// [`Failure::Outage`] when it cannot be reached or lets nobody in.
    pub async fn send(&self, customer_id: Uuid, notice: &Notice) -> Result<(), Failure> {
        let message = self.message(customer_id, notice).map_err(Failure::Reject)?;
        match &self.transport {
            Outgoing::Smtp(server) => server.send(message).await.map(drop).map_err(from_smtp),
            Outgoing::Files(directory) => {
                write(directory, notice.event_id, &message.formatted()).await.map_err(Failure::Outage)
            }
        }
    }

    /// Whether mails can leave.
    ///
    /// # Errors
    /// Why they cannot.
    pub async fn probe(&self) -> anyhow::Result<()> {
        match &self.transport {
            Outgoing::Smtp(server) => {
                anyhow::ensure!(server.test_connection().await?, "the mail server does not answer");
                Ok(())
            }
            Outgoing::Files(directory) => tokio::fs::metadata(directory)
                .await
                .map(drop)
                .with_context(|| format!("look at {}", directory.display())),
        }
    }

    fn message(&self, customer_id: Uuid, notice: &Notice) -> anyhow::Result<Message> {
        let to = Mailbox::new(None, address(customer_id, &self.customer_domain)?);
        let message = Message::builder()
            .message_id(Some(format!("<{}@notifications.{}>", notice.event_id, self.from.email.domain())))
            .date(SystemTime::from(notice.at.as_offset()))
            .from(self.from.clone())
            .to(to)
            .subject(subject(notice))
            .header(ContentType::TEXT_PLAIN)
            .body(body(notice))?;
        Ok(message)
    }
}

fn address(customer_id: Uuid, domain: &str) -> Result<Address, lettre::address::AddressError> {
    Address::new(customer_id.to_string(), domain)
}

/// One file for each fact, whole or not there.
async fn write(directory: &Path, event_id: Uuid, mail: &[u8]) -> anyhow::Result<()> {
    let (path, partial) = (directory.join(format!("{event_id}.eml")), directory.join(format!(".{event_id}.partial")));
    let doing = || format!("write {}", path.display());
    tokio::fs::create_dir_all(directory).await.with_context(doing)?;
    tokio::fs::write(&partial, mail).await.with_context(doing)?;
    tokio::fs::rename(&partial, &path).await.with_context(doing)
}

/// What an answer of the mail server, or none, says about the mail.
fn from_smtp(error: Error) -> Failure {
    let code = error.status().map(u16::from);
    let (permanent, transient) = (error.is_permanent(), error.is_transient());
    let error = anyhow::Error::new(error).context("the mail was not sent");
    match code {
        // Closing (421), or it wants another login (530 to 538): no mail would do better.
        Some(421 | 530..=538) => Failure::Outage(error),
        _ if permanent => Failure::Reject(error),
        _ if transient => Failure::Retry(error),
        _ => Failure::Outage(error),
    }
}
