//! The inventory service.

pub mod domain;
