//! The orders service.
