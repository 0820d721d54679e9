//! Writes to customers what became of their orders: one mail for each fact. Has no database.
//!
//! | hears | does |
//! |---|---|
//! | `OrderCreated` | remembers whose order it is, sends what was held back |
//! | `OrderConfirmed`, `OrderCancelled`, `RefundIssued` | sends a mail, or holds it back until the customer is known |
//!
//! [`domain`] decides and words, [`recipients`] remembers, [`mail`] sends. `docs/services/notifications.md` is the page for
//! people.

use std::sync::Arc;

use mesh::{KvService, Service};

pub mod domain;
pub mod mail;
pub mod recipients;
pub mod settings;
pub mod subscribers;

pub use settings::{Settings, SettingsError};

/// The service, ready to run.
///
/// # Errors
/// When the settings name a mail server or an address that cannot be used.
pub fn service(settings: Settings) -> Result<KvService, SettingsError> {
    let post = Arc::new(mail::Post::new(settings)?);
    Ok(Service::without_database("notifications", env!("CARGO_PKG_VERSION"))
        .bucket(recipients::BUCKET)
        .subscribe(subscribers::RememberCustomer(Arc::clone(&post)))
        .subscribe(subscribers::MailConfirmation(Arc::clone(&post)))
        .subscribe(subscribers::MailCancellation(Arc::clone(&post)))
        .subscribe(subscribers::MailRefund(post)))
}
