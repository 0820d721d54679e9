//! What an order is and how it may change. Nothing here does I/O, tells the time or draws an id.

mod order;
mod placement;
mod transition;

pub use order::{Order, Status};
pub use placement::{Draft, DraftLine, LINES_MAX, Placement, QUANTITY_MAX, TotalError, Violation, total};
pub use transition::{Decision, Input, Kept, on};
