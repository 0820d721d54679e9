//! The payments service.

pub mod domain;
