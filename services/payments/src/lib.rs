//! The payments service.
