//! The contracts: every fact of the shop, versioned.
