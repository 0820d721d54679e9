//! Who an order belongs to, and what waits for them: one entry of the bucket for each order.

use mesh::{Failure, Found, Kv, Lifetime};
use uuid::Uuid;

use crate::domain::Recipient;

/// The bucket `recipients_notifications`.
pub const BUCKET: &str = "recipients";

/// What is known about the owner of an order; nothing, for one that was never heard of.
///
/// # Errors
/// When the bucket does not answer.
pub async fn of_order(kv: &Kv, order_id: Uuid) -> Result<Found<Recipient>, Failure> {
    let found = kv.bucket(BUCKET).get(&order_id.to_string()).await?;
    Ok(found.unwrap_or(Found { value: Recipient::default(), revision: 0 }))
}

/// Writes it over the revision that was read. Returns the new one.
///
/// # Errors
/// [`Failure::Conflict`] when somebody else wrote first; an outage when the bucket does not answer.
pub async fn remember(kv: &Kv, order_id: Uuid, recipient: &Recipient, revision: u64) -> Result<u64, Failure> {
    // A mail that is held back waits as long as it takes.
    let lives = if recipient.held.is_empty() { Lifetime::OfBucket } else { Lifetime::Unlimited };
    let (bucket, key) = (kv.bucket(BUCKET), order_id.to_string());
    Ok(match revision {
        0 => bucket.create(&key, recipient, lives).await?,
        revision => bucket.update(&key, recipient, revision, lives).await?,
    })
}
