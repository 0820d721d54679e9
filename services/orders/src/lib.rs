//! The orders service.

pub mod domain;
