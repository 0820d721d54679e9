//! What stock and a reservation are and how they may change. Nothing here does I/O, tells the time or draws an id.

mod allocation;
mod demand;
mod reservation;
mod stock;

pub use allocation::{Refusal, allocate};
pub use demand::{Demand, DemandError, Line};
pub use reservation::{Decision, Held, Input, Kept, Reservation, on};
pub use stock::{ON_HAND_MAX, Stock, StockRefused};
