//! What an account and a payment are and how they may change. Nothing here does I/O, tells the time or draws an id.

mod account;
mod payment;

pub use account::{Account, DepositRefused, Entry, LedgerError};
pub use payment::{Bill, Charge, Decision, Input, Kept, NotPositive, Payment, on};
