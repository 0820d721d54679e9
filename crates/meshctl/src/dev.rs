//! `dev`: a mesh on this machine.

pub mod servers;
pub mod state;
