//! The bounds of every message, the same for publishers and readers.

/// Longest causation chain; a fact past it is dead-lettered as a loop.
pub const HOPS_MAX: u16 = 32;
/// Headers and body of one message together, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 65_536;
/// All headers of one message as NATS writes them, in bytes.
pub const HEADERS_BYTES_MAX: usize = 4_096;
/// The part of [`HEADERS_BYTES_MAX`] kept free for what the relay adds on each hop: the message id, the expected stream,
/// batch bookkeeping and the trace context of the publish.
pub const HEADERS_RESERVED_BYTES: usize = 1_024;
/// The JSON body, in bytes.
pub const BODY_BYTES_MAX: usize = MESSAGE_BYTES_MAX - HEADERS_BYTES_MAX;
/// Nesting of objects and arrays in a body, the top-level object included.
pub const DEPTH_MAX: usize = 32;
/// Largest magnitude of an integer on the wire: 2^53 - 1, the last one that a reader with doubles holds exactly.
pub const INTEGER_MAX: i64 = 9_007_199_254_740_991;
/// Longest ordering key, in bytes.
pub const KEY_BYTES_MAX: usize = 128;
