//! The transactional outbox: staging, and the statements on its tables. No publishing here; that is the relay's.

mod insert;
pub(crate) mod retry;
mod staged;
pub(crate) mod status;
pub(crate) mod why;

pub(crate) use insert::insert;
pub use staged::PublishError;
pub(crate) use staged::StagedFact;

/// Bucket groups per service: the unit that relays lease.
pub(crate) const BUCKET_GROUPS: u32 = 16;

/// The group of a bucket: 16 groups of 4 neighbouring buckets.
pub(crate) fn bucket_group(bucket: u32) -> i16 {
    // A bucket is below 64, so the group is below 16.
    (bucket / (envelope::BUCKETS / BUCKET_GROUPS)) as i16
}
