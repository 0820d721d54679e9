//! Ids that are derived, not drawn.
//!
//! Handling an event twice must say the same facts under the same ids: after a crash, after a broker lost its tail, in a
//! replay. So an id is a function of what caused it, who speaks and how often it spoke before in this handling. The
//! leading 48 bits are the millisecond of the flow's root, which keeps database indexes in time order.

use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

/// Separate the two families, so that no label can produce the id of an event.
const EVENT_FAMILY: &[u8] = b"mesh.event.1";
const NAMED_FAMILY: &[u8] = b"mesh.named.1";

/// The id of the fact number `ordinal` (from 0) that `emitter` says while it handles the event `cause`.
///
/// `emitter` is `<service>/<subscriber or endpoint>`. A `@<build>` behind it is left out of the hash: a new build handles a
/// redelivery under the same ids.
pub fn derive(cause: Uuid, emitter: &str, ordinal: u32) -> Uuid {
    assemble(cause, EVENT_FAMILY, emitter, &ordinal.to_be_bytes())
}

/// A business id (`payment_id`, `refund_id`) that `emitter` mints while it handles `cause`, told apart by `label`.
pub fn derive_named(cause: Uuid, emitter: &str, label: &str) -> Uuid {
    assemble(cause, NAMED_FAMILY, emitter, label.as_bytes())
}

/// The milliseconds since 1970 that a time-ordered id begins with.
pub fn millis(id: Uuid) -> u64 {
    u64::try_from(id.as_u128() >> 80).unwrap_or(u64::MAX)
}

fn assemble(cause: Uuid, family: &[u8], emitter: &str, discriminator: &[u8]) -> Uuid {
    let name = emitter.split_once('@').map_or(emitter, |(name, _build)| name);
    let mut hash = Sha256::new();
    // Each part behind its length: no two different triples give the same bytes.
    for part in [family, cause.as_bytes().as_slice(), name.as_bytes(), discriminator] {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    let digest = hash.finalize();
    let mut bytes = *cause.as_bytes();
    bytes[6..].copy_from_slice(&digest[..10]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests;
